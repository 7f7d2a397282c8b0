#pragma once
// Statements in which varying parameters only say which plane of a buffer is meant, as k in `u[k, :, n - 1]@i`, or
// where a slice of a fixed length begins, as in `u[k * b : (k + 1) * b]@i`: what moves, and between whom, is the same
// for every k; the plane lies elsewhere. So it is a buffer of its own, with a fixed pattern, which a run finds where
// its parameters say. Where other things vary, too, as the owner in `u[k / size, :]@k % size`, the pattern hangs on
// these only.

#include <memory>
#include <vector>

#include "engine/analysis/bound_plan.hpp"

namespace kplan {

/// The plan with planes as buffers, behind those that it declares, in statements whose pattern is fixed then or
/// hangs_on_parameters(); the plan itself where there are none. It says the same, as long as the indices lie inside
/// their dimensions. These hang on nothing but uniform parameters, as the extents do, so that all ranks find the same
/// wrong.
std::shared_ptr<const PlanModel> with_planes(std::shared_ptr<const PlanModel> plan);

/// One reference to each plane that the statement names; none where it is not one of those.
std::vector<const Expr*> planes_of(const PlanModel& plan, const Statement& s);

/// Whether two planes of one buffer have no element in common, whatever the parameters: in some dimension the index of
/// one is never that of the other, as (t + 1) % 2 and t % 2. False where that does not show.
bool are_surely_apart(const PlanModel& plan, int a, int b);

/// Where the plane that the statement names begins in its buffer, in elements, with the parameters of now. Throws
/// PlanError, on all ranks alike: an index outside its dimension, or without a value.
std::int64_t first_of_plane(const BoundPlan& bound, const Statement& s, const Expr& plane);

}  // namespace kplan
