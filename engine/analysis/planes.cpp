// How it works: references by which values are read, and places, not those that stand in subscripts of others. Places
// of one buffer must be on one plane, so that what is assigned twice is still found.
#include "engine/analysis/planes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/analysis/expressions.hpp"
#include "engine/analysis/knowledge.hpp"

namespace kplan {
namespace {

bool is_varying_parameter(const PlanModel& plan, const Expr& e) {
  return e.kind == ExprKind::parameter && plan.parameters[static_cast<std::size_t>(e.id)].is_varying;
}

/// Whether all ranks have the same extent.
bool is_uniform_extent(const PlanModel& plan, const Expr& e) {
  return !contains(e, [&](const Expr& x) {
    return x.kind == ExprKind::rank ||
           (x.kind == ExprKind::parameter && !plan.parameters[static_cast<std::size_t>(x.id)].is_uniform);
  });
}

/// Calls f(element) for an expression's references that do not stand in subscripts of others.
template <class F>
void each_reference(const Expr& e, const F& f) {
  if (e.kind == ExprKind::element) return f(e);
  for (const ExprPtr& operand : e.operands) each_reference(*operand, f);
}

class Rewriting {
 public:
  /// `plan`: the copy to be changed.
  explicit Rewriting(PlanModel& plan) : plan_(plan) {}

  /// Gives the statement planes where its pattern is fixed then, or is the same for the same values of what else varies
  /// in it, so that it need not be found anew for every plane.
  void rewrite(Statement& s) {
    Statement out = s;
    const std::size_t buffers = plan_.buffers.size();
    for (Reduction& r : out.reductions) {
      r.place = on_planes(r.place, s);
      r.value = on_planes(r.value, s);
    }
    const bool is_found_again = !infer_knowledge(plan_, out).is_varying || hangs_on_parameters(plan_, out);
    if (!planes_of(plan_, out).empty() && is_found_again && has_places_on_one_plane(out)) s = std::move(out);
    else plan_.buffers.resize(buffers);
  }

 private:
  /// The expression with the planes that it reads as buffers.
  ExprPtr on_planes(const ExprPtr& e, const Statement& s) {
    if (e->kind == ExprKind::element) return on_plane(e, s);
    std::shared_ptr<Expr> out;
    for (std::size_t k = 0; k < e->operands.size(); ++k) {
      ExprPtr other = on_planes(e->operands[k], s);
      if (other == e->operands[k]) continue;
      if (!out) out = std::make_shared<Expr>(*e);
      out->operands[k] = std::move(other);
    }
    return out ? out : e;
  }

  ExprPtr on_plane(const ExprPtr& e, const Statement& s) {
    std::optional<Plane> plane = plane_of(*e, s);
    if (!plane) return e;
    const auto out = std::make_shared<Expr>(*e);
    for (std::size_t d = 0; d < plane->firsts.size(); ++d) {
      if (!plane->firsts[d]) continue;
      if (plane->lengths[d]) {
        out->subscripts[d].lo = out->subscripts[d].hi = nullptr;  // all there is
        continue;
      }
      const auto zero = std::make_shared<Expr>(*e->subscripts[d].lo);
      zero->kind = ExprKind::constant;
      zero->value = ScalarValue::integer(0);
      zero->type = Scalar::i64;
      zero->operands.clear();
      out->subscripts[d].lo = zero;
    }
    out->id = number_of(std::move(*plane), *e, s);
    return out;
  }

  /// What the reference names by varying parameters; nothing where it does not.
  std::optional<Plane> plane_of(const Expr& e, const Statement& s) const {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(e.id)];
    const std::size_t dimensions = buffer.shape.size();
    Plane out{e.id, std::vector<ExprPtr>(dimensions), std::vector<ExprPtr>(dimensions)};
    bool is_chosen = false;
    for (std::size_t d = 0; d < e.subscripts.size(); ++d) {
      const Subscript& sub = e.subscripts[d];
      if (!sub.lo || !contains(*sub.lo, [&](const Expr& x) { return is_varying_parameter(plan_, x); })) continue;
      if (!is_of_uniform_parameters(plan_, s, *sub.lo) || !is_uniform_extent(plan_, *buffer.shape[d]))
        return std::nullopt;
      if (sub.is_slice && !(out.lengths[d] = length_of(sub, s))) return std::nullopt;
      out.firsts[d] = sub.lo;
      is_chosen = true;
    }
    return is_chosen ? std::optional(std::move(out)) : std::nullopt;
  }

  /// How many elements a slice has by its text, `x : x + n`, `x * n : x * n + n` or `x * n : (x + 1) * n`, where n is a
  /// number or a fixed uniform parameter; null for others.
  ExprPtr length_of(const Subscript& sub, const Statement& s) const {
    if (!sub.hi || sub.step) return nullptr;
    const auto is_operation = [](const Expr& e, Operation operation) {
      return e.kind == ExprKind::operation && e.operation == operation;
    };
    ExprPtr out;
    if (is_operation(*sub.hi, Operation::add)) {
      for (const int k : {0, 1})
        if (are_same(sub.hi->operands[k], sub.lo)) out = sub.hi->operands[1 - k];
    } else if (is_operation(*sub.hi, Operation::mul) && is_operation(*sub.lo, Operation::mul)) {
      const std::vector<ExprPtr>&from = sub.lo->operands, &to = sub.hi->operands;
      const auto is_one_more = [&](const Expr& next, const ExprPtr& x) {
        return is_operation(next, Operation::add) && are_same(next.operands[0], x) &&
               next.operands[1]->kind == ExprKind::constant && next.operands[1]->value.as_integer() == 1;
      };
      for (const int k : {0, 1})
        if (is_one_more(*to[k], from[k]) && are_same(to[1 - k], from[1 - k])) out = from[1 - k];
    }
    const bool is_fixed = out && !is_varying_parameter(plan_, *out) && is_of_uniform_parameters(plan_, s, *out) &&
                          (out->kind == ExprKind::parameter || out->kind == ExprKind::constant);
    return is_fixed ? out : nullptr;
  }

  int number_of(Plane plane, const Expr& e, const Statement& s) {
    const auto are_alike = [](const ExprPtr& a, const ExprPtr& b) { return are_same(a, b); };
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const std::optional<Plane>& known = plan_.buffers[b].plane;
      if (known && known->buffer == plane.buffer && std::ranges::equal(known->firsts, plane.firsts, are_alike) &&
          std::ranges::equal(known->lengths, plane.lengths, are_alike))
        return static_cast<int>(b);
    }
    Buffer out = plan_.buffers[static_cast<std::size_t>(plane.buffer)];
    const auto text = [&](const ExprPtr& x) { return s.text.text.substr(x->span.begin, x->span.end - x->span.begin); };
    std::string subscripts;
    for (std::size_t d = 0; d < plane.firsts.size(); ++d) {
      const Subscript* const sub = plane.firsts[d] ? &e.subscripts[d] : nullptr;
      subscripts += (d > 0 ? ", " : "") + (!sub ? ":" : text(sub->lo) + (sub->is_slice ? ":" + text(sub->hi) : ""));
    }
    out.name += "[" + subscripts + "]";
    out.plane = std::move(plane);
    plan_.buffers.push_back(std::move(out));
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  /// Of each buffer.
  bool has_places_on_one_plane(const Statement& s) const {
    return std::ranges::all_of(s.reductions, [&](const Reduction& a) {
      return std::ranges::all_of(s.reductions, [&](const Reduction& b) {
        return a.place->id == b.place->id || plan_.storage_of(a.place->id) != plan_.storage_of(b.place->id);
      });
    });
  }

  PlanModel& plan_;
};

/// A sum of expressions that are not looked into, times numbers.
class LinearForm {
 public:
  /// False where the numbers do not fit.
  bool add(const ExprPtr& e, std::int64_t factor) {
    const auto is = [&](Operation operation) { return e->kind == ExprKind::operation && e->operation == operation; };
    std::int64_t product = 0;
    if (e->kind == ExprKind::constant)
      return !__builtin_mul_overflow(e->value.as_integer(), factor, &product) &&
             !__builtin_add_overflow(constant_, product, &constant_);
    if (is(Operation::add)) return add(e->operands[0], factor) && add(e->operands[1], factor);
    if (is(Operation::sub) || is(Operation::neg))
      return !__builtin_sub_overflow(std::int64_t{0}, factor, &product) && add(e->operands.back(), product) &&
             (is(Operation::neg) || add(e->operands[0], factor));
    for (const std::size_t k : {0, 1})
      if (is(Operation::mul) && e->operands[k]->kind == ExprKind::constant)
        return !__builtin_mul_overflow(e->operands[k]->value.as_integer(), factor, &product) &&
               add(e->operands[1 - k], product);
    const auto known = std::ranges::find_if(terms_, [&](const Term& t) { return are_same(t.expression, e); });
    Term& term = known == terms_.end() ? terms_.emplace_back(Term{e}) : *known;
    return !__builtin_add_overflow(term.factor, factor, &term.factor);
  }
  /// Whether no values of the expressions make it a multiple of `modulus`; 0: make it zero.
  bool is_never_multiple(std::int64_t modulus) const {
    std::uint64_t common = magnitude(modulus);
    for (const Term& t : terms_) common = std::gcd(common, magnitude(t.factor));
    return common == 0 ? constant_ != 0 : magnitude(constant_) % common != 0;
  }

 private:
  struct Term {
    ExprPtr expression;
    std::int64_t factor = 0;
  };
  static std::uint64_t magnitude(std::int64_t v) {
    return v < 0 ? -static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  }

  std::int64_t constant_ = 0;
  std::vector<Term> terms_;
};

/// Whether the two never have one value. Index arithmetic does not overflow: that is an error.
bool are_never_equal(const ExprPtr& a, const ExprPtr& b) {
  const auto differ = [](const ExprPtr& x, const ExprPtr& y, std::int64_t modulus) {
    LinearForm difference;
    return difference.add(x, 1) && difference.add(y, -1) && difference.is_never_multiple(modulus);
  };
  const auto modulus_of = [](const Expr& e) -> std::int64_t {
    const bool is_mod = e.kind == ExprKind::operation && e.operation == Operation::mod;
    return is_mod && e.operands[1]->kind == ExprKind::constant ? e.operands[1]->value.as_integer() : 0;
  };
  const std::int64_t modulus = modulus_of(*a);
  return differ(a, b, 0) ||
         (modulus != 0 && modulus == modulus_of(*b) && differ(a->operands[0], b->operands[0], modulus));
}

}  // namespace

bool are_surely_apart(const PlanModel& plan, int a, int b) {
  const std::optional<Plane>&x = plan.buffers[static_cast<std::size_t>(a)].plane,
        &y = plan.buffers[static_cast<std::size_t>(b)].plane;
  // Strides of a plan's own may let different indices meet.
  if (!x || !y || x->buffer != y->buffer || !plan.buffers[static_cast<std::size_t>(x->buffer)].strides.empty())
    return false;
  for (std::size_t d = 0; d < x->firsts.size(); ++d)
    if (x->firsts[d] && y->firsts[d] && !x->lengths[d] && !y->lengths[d] && are_never_equal(x->firsts[d], y->firsts[d]))
      return true;
  return false;
}

std::shared_ptr<const PlanModel> with_planes(std::shared_ptr<const PlanModel> plan) {
  if (uniform_varying_parameters(*plan).empty()) return plan;
  std::shared_ptr<PlanModel> out;
  for (std::size_t k = 0; k < plan->statements.size(); ++k) {
    if (!infer_knowledge(*plan, plan->statements[k]).is_varying) continue;
    if (!out) out = changeable_copy(plan);
    Rewriting(*out).rewrite(out->statements[k]);
  }
  return out && out->buffers.size() > plan->buffers.size() ? out : plan;
}

[[gnu::hot]] std::int64_t first_of_plane(const BoundPlan& bound, const Statement& s, const Expr& reference) try {
  const Plane& plane = *bound.model->buffers[static_cast<std::size_t>(reference.id)].plane;
  const Layout& layout = bound.state.layouts[static_cast<std::size_t>(plane.buffer)];
  const EvaluationContext context{.state = &bound.state};
  std::int64_t out = 0;
  for (std::size_t d = 0; d < plane.firsts.size(); ++d) {
    if (!plane.firsts[d]) continue;
    const std::int64_t first = evaluate_index(*plane.firsts[d], context);
    const std::int64_t count = bound.state.layouts[static_cast<std::size_t>(reference.id)].shape[d];
    check_bounds(reference, d, {.first = first, .count = count}, layout.shape[d]);
    if (count > 0) out += first * layout.strides[d];
  }
  return out;
} catch (const EvaluationFault& f) {
  throw error_in(*bound.model, s, f.span, f.code, f.message);
}

std::vector<const Expr*> planes_of(const PlanModel& plan, const Statement& s) {
  std::vector<const Expr*> out;
  const auto note = [&](const Expr& e) {
    if (plan.buffers[static_cast<std::size_t>(e.id)].plane && std::ranges::find(out, e.id, &Expr::id) == out.end())
      out.push_back(&e);
  };
  for (const Reduction& r : s.reductions) {
    each_reference(*r.place, note);
    each_reference(*r.value, note);
  }
  return out;
}

}  // namespace kplan
