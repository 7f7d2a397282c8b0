#pragma once
#include <string>
#include <vector>

#include "plans/model.hpp"

namespace kplan {

/// Names of the operators that every plan has.
const std::vector<std::string>& builtin_operators();

/// Fills in what a reduction's operator does to its place, whose type is known; `statement` is its statement's name,
/// for messages. Throws ExpressionFault about the statement's text, and PlanError about the text of an operator of the
/// plan's own.
void check_operator(const PlanModel& plan, const std::string& statement, const ReductionSyntax& r, Reduction& out,
                    std::size_t& operator_node_count);

}  // namespace kplan
