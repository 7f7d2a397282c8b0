#pragma once
// Statements that move several fields of records one by one, as p.x, p.y, p.z: they travel together.

#include <memory>

#include "plans/model.hpp"

namespace kplan {

/// The plan with reductions joined that move fields which lie side by side at both ends, of the same element to the
/// same element; the plan itself where there are none. It says the same.
std::shared_ptr<const PlanModel> with_joined_fields(std::shared_ptr<const PlanModel> plan);

}  // namespace kplan
