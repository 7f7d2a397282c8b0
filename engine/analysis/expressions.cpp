#include "engine/analysis/expressions.hpp"

#include <functional>

namespace kplan {
namespace {

using Replace = std::function<ExprPtr(const ExprPtr&)>;  ///< null: look inside

ExprPtr rewrite(const ExprPtr& e, const Replace& replace) {
  if (!e) return e;
  if (ExprPtr other = replace(e)) return other;
  bool changed = false;
  const auto inner = [&](const ExprPtr& p) {
    ExprPtr out = rewrite(p, replace);
    changed = changed || out != p;
    return out;
  };
  std::vector<ExprPtr> operands;
  std::vector<Subscript> subscripts;
  for (const auto& o : e->operands) operands.push_back(inner(o));
  for (const Subscript& s : e->subscripts) subscripts.push_back({inner(s.lo), inner(s.hi), inner(s.step), s.is_slice});
  if (!changed) return e;
  Expr out = *e;
  out.operands = std::move(operands);
  out.subscripts = std::move(subscripts);
  return std::make_shared<const Expr>(std::move(out));
}

}  // namespace

ExprPtr with_rank(const ExprPtr& e, std::int64_t rank) {
  return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != ExprKind::rank) return nullptr;
    Expr constant = *x;
    constant.kind = ExprKind::constant;
    constant.value = ScalarValue::integer(rank);
    return std::make_shared<const Expr>(std::move(constant));
  });
}

bool has_private_count(const PlanModel& plan, const Expr& e) {
  const auto is_private = [&](const Expr& x) {
    return (x.kind == ExprKind::parameter && !plan.parameters[static_cast<std::size_t>(x.id)].is_uniform) ||
           (x.kind == ExprKind::element && !plan.buffers[static_cast<std::size_t>(x.id)].is_uniform);
  };
  const std::vector<ExprPtr>& shape = plan.buffers[static_cast<std::size_t>(e.id)].shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Subscript* sub = e.subscripts.empty() ? nullptr : &e.subscripts[d];
    if (sub && !sub->is_slice) continue;
    if ((!sub || !sub->hi) && contains(*shape[d], is_private)) return true;
    if (!sub) continue;
    for (const auto* part : {&sub->lo, &sub->hi, &sub->step})
      if (*part && contains(**part, is_private)) return true;
  }
  return false;
}

ExprPtr with_bindings(const ExprPtr& e, const Statement& s) {
  return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != ExprKind::variable) return nullptr;
    for (const Clause& c : s.clauses)
      if (c.kind == ClauseKind::binding && c.variable == x->id) return with_bindings(c.expression, s);
    return nullptr;
  });
}

}  // namespace kplan
