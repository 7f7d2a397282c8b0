#include "engine/analysis/expressions.hpp"

#include <algorithm>

namespace kplan {
namespace {

/// The expression with what `replace` gives in place of nodes for which it is not null; nothing is copied of an
/// expression without such nodes, for which null is returned.
template <class Replace>
ExprPtr replaced(const Expr& e, const Replace& replace) {
  if (ExprPtr other = replace(e)) return other;
  std::shared_ptr<Expr> out;
  const auto look_into = [&](const ExprPtr& part, const auto& same_part_of) {
    if (!part) return;
    if (ExprPtr other = replaced(*part, replace)) {
      if (!out) out = std::make_shared<Expr>(e);
      same_part_of(*out) = std::move(other);
    }
  };
  for (std::size_t k = 0; k < e.operands.size(); ++k)
    look_into(e.operands[k], [&](Expr& x) -> ExprPtr& { return x.operands[k]; });
  for (std::size_t k = 0; k < e.subscripts.size(); ++k)
    for (const auto part : {&Subscript::lo, &Subscript::hi, &Subscript::step})
      look_into(e.subscripts[k].*part, [&](Expr& x) -> ExprPtr& { return x.subscripts[k].*part; });
  return out;
}

template <class Replace>
ExprPtr rewrite(const ExprPtr& e, const Replace& replace) {
  ExprPtr out = e ? replaced(*e, replace) : nullptr;
  return out ? out : e;
}

}  // namespace

std::shared_ptr<PlanModel> changeable_copy(std::shared_ptr<const PlanModel> plan) {
  struct Copy {
    std::shared_ptr<const PlanModel> original;
    PlanModel plan;
  };
  const auto out = std::make_shared<Copy>(Copy{plan, *plan});
  return {out, &out->plan};
}

ExprPtr with_rank(const ExprPtr& e, std::int64_t rank) {
  return rewrite(e, [&](const Expr& x) -> ExprPtr {
    if (x.kind != ExprKind::rank) return nullptr;
    Expr constant = x;
    constant.kind = ExprKind::constant;
    constant.value = ScalarValue::integer(rank);
    return std::make_shared<const Expr>(std::move(constant));
  });
}

bool have_same_subscripts(const Expr& a, const Expr& b) {
  return std::ranges::equal(a.subscripts, b.subscripts, [](const Subscript& x, const Subscript& y) {
    return x.is_slice == y.is_slice && are_same(x.lo, y.lo) && are_same(x.hi, y.hi) && are_same(x.step, y.step);
  });
}

bool are_same(const Expr& a, const Expr& b) {
  if (a.kind != b.kind || a.operation != b.operation || a.id != b.id || a.field != b.field || a.type != b.type ||
      a.value.type != b.value.type || a.value.bits[0] != b.value.bits[0] || a.value.bits[1] != b.value.bits[1])
    return false;
  return have_same_subscripts(a, b) &&
         std::ranges::equal(a.operands, b.operands, [](const auto& x, const auto& y) { return are_same(x, y); });
}

bool are_same(const ExprPtr& a, const ExprPtr& b) { return a && b ? are_same(*a, *b) : !a && !b; }

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
  return rewrite(e, [&](const Expr& x) -> ExprPtr {
    if (x.kind != ExprKind::variable) return nullptr;
    for (const Clause& c : s.clauses)
      if (c.kind == ClauseKind::binding && c.variable == x.id) return with_bindings(c.expression, s);
    return nullptr;
  });
}

}  // namespace kplan
