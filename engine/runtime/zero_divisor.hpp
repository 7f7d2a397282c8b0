#pragma once
// Where a value has divided by zero, for the message that says so.

#include <vector>

#include "engine/analysis/bound_plan.hpp"
#include "engine/runtime/native_reduction.hpp"

namespace kplan {

/// ` when i = 3`: the first environment in which this rank's value of a pushed reduction cannot be evaluated, found by
/// evaluating them one by one, as the reference does; empty where there is none.
std::string zero_divisor_environment(const BoundPlan& bound, const std::vector<BoundMemory>& memory, const Statement& s,
                                     const Reduction& r);

}  // namespace kplan
