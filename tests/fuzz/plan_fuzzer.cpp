// Fuzzes the JSON reader and what follows it. A document either is refused with an Error, or it is a plan that
// survives being written and read again, and that two simulated ranks run to an end or to an Error.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kplan/plan.hpp"
#include "plans/model.hpp"
#include "plans/reference.hpp"
#include "tests/fuzz/require.hpp"

namespace {

constexpr std::int64_t most_elements = 4096;
constexpr std::size_t most_bytes = 1 << 20;

/// Small values, other ones on every rank for private parameters.
std::vector<kplan::ScalarValue> values_of_parameters(const kplan::PlanModel& plan, std::int64_t rank) {
  std::vector<kplan::ScalarValue> out;
  for (const kplan::Parameter& p : plan.parameters)
    out.push_back(p.default_value ? *p.default_value
                                  : kplan::convert(kplan::ScalarValue::integer(p.is_uniform ? 3 : 2 + rank), p.type));
  return out;
}

/// The rank's memory, or nothing where it would be too large for a fuzzer.
bool allocate(const kplan::PlanModel& plan, std::int64_t rank, std::int64_t size, kplan::ReferenceRank& out) {
  out.parameters = values_of_parameters(plan, rank);
  const auto layouts = kplan::layouts_of(plan, rank, size, out.parameters);
  std::size_t total = 0;
  for (std::size_t b = 0; b < layouts.size(); ++b) {
    if (layouts[b].element_count > most_elements || layouts[b].extent > most_elements) return false;
    const std::size_t bytes = static_cast<std::size_t>(layouts[b].extent) * plan.buffers[b].type.size_bytes;
    total += bytes;
    if (total > most_bytes) return false;
    out.buffers.emplace_back(bytes);
    // Small non-negative numbers in the first byte of each element: index buffers mostly hold ranks and offsets.
    for (std::size_t k = 0; k < bytes; k += plan.buffers[b].type.size_bytes)
      out.buffers.back()[k] = static_cast<std::byte>((k / 4 + static_cast<std::size_t>(rank)) % 3);
  }
  return true;
}

void run(const kplan::PlanModel& plan) {
  constexpr std::int64_t size = 2;
  std::vector<kplan::ReferenceRank> world(size);
  for (std::int64_t r = 0; r < size; ++r)
    if (!allocate(plan, r, size, world[static_cast<std::size_t>(r)])) return;
  kplan::run_reference(plan, world, {.step_count = 2000, .element_count = 20'000});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  const std::string_view json(reinterpret_cast<const char*>(bytes), count);
  try {
    const kplan::Plan plan = kplan::Plan::parse(json, "fuzz");
    const std::string printed = plan.to_json();
    try {
      const kplan::Plan again = kplan::Plan::parse(printed, "printed");
      require(again.to_json() == printed && again.digest() == plan.digest(), "printing is not stable", printed);
    } catch (const kplan::Error& e) {
      require(false, e.what(), printed);
    }
    run(plan.model());
  } catch (const kplan::InternalError& e) {
    require(false, e.what(), json);
  } catch (const kplan::Error& e) {
    require(std::string_view(e.what()).find(e.code()) != std::string_view::npos, "the message lacks its code",
            e.what());
  }
  return 0;
}
