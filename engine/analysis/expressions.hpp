#pragma once
// Rewriting of checked plans, and of their expressions for the rank that evaluates them.

#include "plans/model.hpp"

namespace kplan {

/// A copy of a plan to be changed, which keeps the original: expressions point to its types and into each other.
std::shared_ptr<PlanModel> changeable_copy(std::shared_ptr<const PlanModel> plan);

/// The expression with every `rank` that stands in it (not in bindings it refers to) replaced by the number: for
/// places and values that are evaluated on another rank than the where-list.
ExprPtr with_rank(const ExprPtr& e, std::int64_t rank);

/// The expression with where-bound names of bindings replaced by what they are bound to.
ExprPtr with_bindings(const ExprPtr& e, const Statement& s);

/// Whether two checked expressions are the same text but for its layout.
bool are_same(const Expr& a, const Expr& b);
bool are_same(const ExprPtr& a, const ExprPtr& b);  ///< or none both
bool have_same_subscripts(const Expr& a, const Expr& b);

/// Whether how many elements the reference names hangs on data that other ranks do not have: private names in the
/// bounds of its slices, or in the buffer's shape where a whole dimension is taken.
bool has_private_count(const PlanModel& plan, const Expr& element);

/// Whether a node that `f` accepts stands in the expression.
template <class F>
bool contains(const Expr& e, const F& f) {
  bool found = false;
  visit(e, [&](const Expr& x) { found = found || f(x); });
  return found;
}

}  // namespace kplan
