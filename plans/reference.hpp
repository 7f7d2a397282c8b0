#pragma once
// The reference interpreter (language.md section 9): executes a plan on simulated ranks in one address space, with
// loops over environments and nothing else. Whatever the engine does must leave the same bits.

#include <cstddef>
#include <vector>

#include "plans/model.hpp"

namespace kplan {

/// One simulated rank: the values of all parameters and the memory of all buffers, each of its layout's extent.
struct ReferenceRank {
  std::vector<ScalarValue> parameters;
  std::vector<std::vector<std::byte>> buffers;
};

/// Runs all statements once, for as many ranks as `world` has. Throws PlanError (with the environment) where the plan
/// is wrong for these values, RunError for a zero divisor in a value, Unsupported for native operators. Cost: every environment on every rank.
void run_reference(const PlanModel& plan, std::vector<ReferenceRank>& world);

}  // namespace kplan
