#pragma once
// What a wrong plan is told: documents of tests/plans/bad are read and, where reading finds nothing wrong, run by the
// reference interpreter on three ranks.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "plans/model.hpp"
#include "plans/reference.hpp"

namespace kplan::test {

/// Values for a rank: parameters their default or else 4, buffers holding 0, 1, 2, ... as far as the type goes.
inline ReferenceRank simple_rank(const PlanModel& plan, std::int64_t rank, std::int64_t size) {
  ReferenceRank out;
  for (const Parameter& p : plan.parameters)
    out.parameters.push_back(p.default_value ? *p.default_value : convert(ScalarValue::integer(4), p.type));
  const auto layouts = layouts_of(plan, rank, size, out.parameters);
  for (std::size_t b = 0; b < layouts.size(); ++b) {
    const ElementType& type = plan.buffers[b].type;
    out.buffers.emplace_back(static_cast<std::size_t>(layouts[b].extent) * type.size_bytes);
    if (type.is_record()) continue;
    for (std::int64_t k = 0; k < layouts[b].extent; ++k)
      convert(ScalarValue::integer(k), type.scalar)
          .store(out.buffers.back().data() + static_cast<std::size_t>(k) * type.size_bytes);
  }
  return out;
}

/// The documents of a folder of tests/plans, sorted.
inline std::vector<std::filesystem::path> documents_of(const std::string& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(KPLAN_SOURCE_DIR) / "tests/plans" / folder))
    if (entry.path().extension() == ".json") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace kplan::test
