#pragma once
#include "plans/model.hpp"

namespace kplan {

/// The checked form of a statement of `plan`, whose declarations are complete. Throws PlanError.
Statement check_statement(const PlanModel& plan, const StatementSource& source);

}  // namespace kplan
