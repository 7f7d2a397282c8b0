// How it works: Open MPI, and MPICH and srun by way of PMI, and PMIx tell their processes who they are by variables.
#include "tools/kplan/launcher.hpp"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "transports/environment.hpp"

namespace kplan::cli {
namespace {

std::optional<int> number_in(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* text = std::getenv(variable);
    if (!text) continue;
    const std::string_view digits(text);
    int out = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (error == std::errc() && end == digits.data() + digits.size() && out >= 0) return out;
  }
  return std::nullopt;
}

}  // namespace

Launch launch_from_environment() {
  return {number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}), number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}),
          !transport::variable("KPLAN_RENDEZVOUS").empty()};
}

}  // namespace kplan::cli
