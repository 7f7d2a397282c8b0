#pragma once
// The reference interpreter, language.md in code: executes a plan on simulated ranks in one address space, with
// loops over environments and nothing else. Whatever the engine does must leave the same bits.

#include <cstddef>
#include <vector>

#include "plans/evaluate.hpp"
#include "plans/model.hpp"

namespace kplan {

/// One simulated rank: the values of all parameters and the memory of all buffers, each of its layout's extent.
struct ReferenceRank {
  std::vector<ScalarValue> parameters;
  std::vector<std::vector<std::byte>> buffers;
};

/// What one run may cost. A plan that needs more is refused.
struct ReferenceLimits {
  std::int64_t step_count = largest_step_count;      ///< of each rank's walk through one where-list
  std::size_t element_count = std::size_t{1} << 28;  ///< transferred by all statements
};

/// Runs all statements once, for as many ranks as `world` has. Throws PlanError (with the environment) where the plan
/// is wrong for these values, RunError for a zero divisor, Unsupported for native operators. Cost: every environment on
/// every rank.
void run_reference(const PlanModel& plan, std::vector<ReferenceRank>& world, const ReferenceLimits& limits = {});

}  // namespace kplan
