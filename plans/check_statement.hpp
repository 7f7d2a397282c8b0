#pragma once
#include "plans/model.hpp"

namespace kplan {

/// The checked form of a statement of `plan`, whose declarations are complete. Throws PlanError. A plan's operators
/// are written out for each place they are used on: `operator_node_count` counts this over all statements, limited.
Statement check_statement(const PlanModel& plan, const StatementSource& source, std::size_t& operator_node_count);

}  // namespace kplan
