// How it works: each folder reads its own variables and gives their names. Names that are like none of them are
// somebody else's business: tests have some, and programs may.
#include "engine/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "jit/settings.hpp"
#include "kplan/error.hpp"
#include "transports/environment.hpp"

namespace kplan {
namespace {

/// Whether of two different words one is the other with a letter left out, added or changed, or with two that have
/// changed places.
bool is_slip_of(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) a.remove_prefix(1), b.remove_prefix(1);
  while (!a.empty() && !b.empty() && a.back() == b.back()) a.remove_suffix(1), b.remove_suffix(1);
  if (a.size() <= 1 && b.size() <= 1) return true;
  return a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
}

}  // namespace

void check_environment() {
  std::vector<std::string_view> known = transport::checked_variables();
  for (const std::string_view name : jit::checked_variables()) known.push_back(name);
  constexpr std::string_view prefix = "KPLAN_";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, prefix.data(), prefix.size()) != 0) continue;
    const std::string_view name(*entry, std::strcspn(*entry, "="));
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto meant = std::ranges::find_if(known, [&](std::string_view k) { return is_slip_of(name, k); });
    if (meant != known.end())
      throw PlanError("KP-E013",
                      fmt::format("there is no environment variable {} (did you mean {}?); unset it, or give "
                                  "it another name if it is not for kplan",
                                  name, *meant));
  }
}

}  // namespace kplan
