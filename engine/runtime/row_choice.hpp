#pragma once
// Which statements go by rows, and how their where-lists are walked then.

#include <optional>

#include "engine/analysis/expressions.hpp"
#include "engine/lower/row_call.hpp"

namespace kplan {

/// The value as it travels: an element that follows others, or an integer; null where it is neither.
ExprPtr plain_value(const PlanModel& plan, const Statement& s, const Reduction& r);

bool is_one_element(const PlanModel& plan, const Expr& e);

/// Of a statement with a varying pattern. The same on all ranks, since it looks at no values.
bool goes_by_rows(const PlanModel& plan, const Statement& s);

/// Of a statement whose pattern hangs_on_parameters(): whether it goes by rows where their values are met for the first
/// time, which costs less than a schedule does. The same on all ranks.
bool goes_by_rows_when_new(const PlanModel& plan, const Statement& s);

/// The statement with `p in world` as `p = rank` where p is who decides (the sender of a push, the receiver of a pull)
/// and nothing else in the where-list names p: the same environments of this rank, and faults, without the environments
/// of all others.
Statement with_own_rank(Statement s);

/// Of a statement that goes by rows, with its own rank: the loop whose turns make one row; none where each makes one of
/// its own. The same on all ranks.
std::optional<RowLoop> loop_of_rows(const PlanModel& plan, const Statement& s);

}  // namespace kplan
