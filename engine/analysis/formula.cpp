// How it works: evaluation over boxes follows the expression tree with strided intervals in place of numbers.
// Narrowing is the reverse (HC4 of interval constraint solving): what the result must be bounds what an operand can
// be, down to the positions of one variable, where a linear congruence gives the exact progression.
#include "engine/analysis/formula.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <numeric>

#include "engine/analysis/with_integer.hpp"

namespace kplan {
namespace {

constexpr std::size_t evaluator = 0;

/// x with a * x = b (mod m), as x0 and the period m / gcd(a, m); nothing when there is none.
std::optional<std::pair<std::int64_t, std::int64_t>> solve_congruence(Wide a, Wide b, std::int64_t m) {
  const auto mod = [](Wide x, Wide y) { return (x % y + y) % y; };
  Wide r0 = mod(a, m), r1 = m, s0 = 1, s1 = 0;
  while (r1 != 0) {
    const Wide q = r0 / r1;
    std::tie(r0, r1) = std::pair(r1, r0 - q * r1);
    std::tie(s0, s1) = std::pair(s1, s0 - q * s1);
  }
  if (r0 == 0) return mod(b, m) == 0 ? std::optional(std::pair<std::int64_t, std::int64_t>(0, 1)) : std::nullopt;
  if (mod(b, r0) != 0) return std::nullopt;
  const Wide period = m / r0;
  return std::pair(static_cast<std::int64_t>(mod(mod(b / r0, period) * mod(s0, period), period)),
                   static_cast<std::int64_t>(period));
}

/// Keeps the indices k of the progression for which a + b * k is in `wanted`; false when none is.
bool restrict_to(Progression& p, Wide a, Wide b, const StridedInterval& wanted) {
  if (b == 0) return wanted.lo <= a && a <= wanted.hi && (wanted.step <= 1 || (a - wanted.lo) % wanted.step == 0);
  Wide k_lo = b > 0 ? -floor_div(-(wanted.lo - a), b) : -floor_div(-(wanted.hi - a), b);
  Wide k_hi = b > 0 ? floor_div(wanted.hi - a, b) : floor_div(wanted.lo - a, b);
  k_lo = std::max<Wide>(k_lo, 0);
  k_hi = std::min<Wide>(k_hi, p.count - 1);
  std::int64_t period = 1;
  if (wanted.step > 1) {
    const auto solution = solve_congruence(b, wanted.lo - a, wanted.step);
    if (!solution) return false;
    period = solution->second;
    const Wide behind = (k_lo - solution->first) % period;
    if (behind != 0) k_lo += behind > 0 ? period - behind : -behind;
  }
  if (k_lo > k_hi) return false;
  const auto count = static_cast<std::int64_t>((k_hi - k_lo) / period + 1);
  p = {p.first + static_cast<std::int64_t>(k_lo) * p.step, count == 1 ? 1 : p.step * period, count};
  return true;
}

/// The values of `a` between the ends of `b`, a set that holds all that both have in common; nothing when that is
/// empty.
std::optional<StridedInterval> met(const StridedInterval& a, const StridedInterval& b) {
  const Wide step = std::max<std::int64_t>(a.step, 1);
  Wide lo = a.lo, hi = a.hi;
  if (b.lo > a.lo) lo += (static_cast<Wide>(b.lo) - a.lo + step - 1) / step * step;
  if (b.hi < a.hi) hi -= (static_cast<Wide>(a.hi) - b.hi + step - 1) / step * step;
  if (lo > hi) return std::nullopt;
  return StridedInterval{static_cast<std::int64_t>(lo), static_cast<std::int64_t>(hi), lo == hi ? 0 : a.step};
}

StridedInterval clamp_to_type(const StridedInterval& v, Scalar type) {
  if (type == Scalar::i64 || type == Scalar::u64) return v;
  if (type == Scalar::boolean)
    return v.contains(0) ? (v.is_single() ? StridedInterval::single(0) : StridedInterval{0, 1, 1})
                         : StridedInterval::single(1);
  const int bits = static_cast<int>(size_of(type)) * 8;
  const std::int64_t lo = is_signed_integer(type) ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t hi = is_signed_integer(type) ? (std::int64_t{1} << (bits - 1)) - 1 : (std::int64_t{1} << bits) - 1;
  return v.lo >= lo && v.hi <= hi ? v : StridedInterval{lo, hi, 1};
}

}  // namespace

Formula::Formula(const Knowing& knowing) : knowing_(knowing), bindings_(knowing.statement->variables.size()) {
  for (const Clause& c : knowing.statement->clauses)
    if (c.kind == ClauseKind::binding) bindings_[static_cast<std::size_t>(c.variable)] = c.expression.get();
}

Formula::Mask Formula::mask_of(const Expr& e) const {
  const auto known = masks_.find(&e);
  if (known != masks_.end()) return known->second;
  Mask mask = 0;
  if (e.kind == ExprKind::rank) mask = 1;
  if (e.kind == ExprKind::variable) {
    const Expr* binding = binding_of(e.id);
    mask = binding ? mask_of(*binding) : Mask{1} << (e.id + 1);
  }
  for (const auto& o : e.operands) mask |= mask_of(*o);
  for (const auto& s : e.subscripts)
    for (const auto* part : {&s.lo, &s.hi, &s.step})
      if (*part) mask |= mask_of(**part);
  masks_[&e] = mask;
  return mask;
}

Formula::Mask Formula::mask_of_set(const Set& s) const {
  Mask mask = 0;
  for (const auto* e : {&s.first, &s.last, &s.step, &s.buffer})
    if (*e) mask |= mask_of(**e);
  for (const auto& e : s.elements) mask |= mask_of(*e);
  return mask;
}

bool Formula::is_ragged(const Set& s) const {
  const bool is_by_ones = !s.step || (s.step->kind == ExprKind::constant && s.step->value.as_integer() == 1);
  return s.kind == Set::Kind::range && is_by_ones && (mask_of_set(s) & ~Mask{1}) != 0;
}

Formula::Mask Formula::open_mask(const Box& box) {
  Mask mask = 0;
  for (std::size_t n = 0; n < box.positions.size(); ++n)
    if (box.positions[n].count > 1 || !box.sets[n].is_known) mask |= Mask{1} << n;
  return mask;
}

std::int64_t Formula::value_at(const Box& box, std::size_t number, std::int64_t position) {
  const BoxSet& set = box.sets[number];
  return set.list ? (*set.list)[static_cast<std::size_t>(position)] : set.first + set.step * position;
}

StridedInterval Formula::range_of_number(std::size_t number, const Box& box) const {
  const BoxSet& set = box.sets[number];
  const Progression& p = box.positions[number];
  if (!set.is_known) return set.hull;
  if (p.count == 1) return StridedInterval::single(value_at(box, number, p.first));
  if (set.list) return set.hull;
  const std::int64_t a = value_at(box, number, p.first), b = value_at(box, number, p.last());
  return {std::min(a, b), std::max(a, b), std::abs(set.step * p.step)};
}

ScalarValue Formula::exact(const Expr& e, const Box& box) const {
  assert(is_single(e, box));
  if (!scratch_state_) {
    scratch_state_ = *knowing_.state;
    scratch_state_->size = knowing_.size;
    scratch_variables_.resize(bindings_.size());
  }
  values_at(box, {}, *scratch_state_, scratch_variables_);
  return evaluate(e, {.state = &*scratch_state_, .variables = scratch_variables_.data()});
}

void Formula::values_at(const Box& box, const std::vector<std::int64_t>& indices, RankState& state,
                        std::vector<ScalarValue>& variables) const {
  const auto value = [&](std::size_t n) {
    const std::int64_t index = indices.empty() ? 0 : indices[n];
    return box.sets[n].is_known ? value_at(box, n, box.positions[n][index]) : 0;
  };
  state.rank = value(evaluator);
  for (const Clause& c : knowing_.statement->clauses) {
    if (c.kind == ClauseKind::filter) continue;
    const auto v = static_cast<std::size_t>(c.variable);
    if (c.kind == ClauseKind::generator) variables[v] = ScalarValue::integer(value(v + 1));
    else if (!indices.empty() || is_single(*c.expression, box)) {
      try {
        variables[v] = evaluate(*c.expression, {.state = &state, .variables = variables.data()});
      } catch (const EvaluationFault&) {
        // Whoever needs this binding in a value of its own evaluates it again and meets the fault there.
        variables[v] = ScalarValue{knowing_.statement->variables[v].type, {0, 0}};
      }
    }
  }
}

StridedInterval Formula::guarded_range(const Expr& e, const Box& box) const {
  try {
    return range_of(e, box);
  } catch (const EvaluationFault&) {
    return e.type == Scalar::boolean ? StridedInterval{0, 1, 1} : StridedInterval::unknown();
  }
}

StridedInterval Formula::range_of(const Expr& e, const Box& box) const {
  switch (e.kind) {
    case ExprKind::constant:
      return is_integral(e) ? StridedInterval::single(e.value.as_integer()) : StridedInterval::unknown();
    case ExprKind::rank: return range_of_number(evaluator, box);
    case ExprKind::size: return StridedInterval::single(knowing_.size);
    case ExprKind::parameter:
      return is_integral(e)
                 ? StridedInterval::single(knowing_.state->parameters[static_cast<std::size_t>(e.id)].as_integer())
                 : StridedInterval::unknown();
    case ExprKind::variable: {
      const Expr* binding = binding_of(e.id);
      return binding ? range_of(*binding, box) : range_of_number(static_cast<std::size_t>(e.id) + 1, box);
    }
    case ExprKind::element: return element_range(e, box);
    case ExprKind::operation: return operation_range(e, box);
    case ExprKind::logical_and:
    case ExprKind::logical_or: {
      const bool is_and = e.kind == ExprKind::logical_and;
      const StridedInterval a = range_of(*e.operands[0], box);
      if (a.is_single()) return (a.lo != 0) == is_and ? range_of(*e.operands[1], box) : a;
      const StridedInterval b = guarded_range(*e.operands[1], box);
      return b.is_single() && (b.lo != 0) != is_and ? b : StridedInterval{0, 1, 1};
    }
    case ExprKind::conditional: {
      const StridedInterval c = range_of(*e.operands[0], box);
      if (c.is_single()) return range_of(*e.operands[c.lo != 0 ? 1 : 2], box);
      return unite(guarded_range(*e.operands[1], box), guarded_range(*e.operands[2], box));
    }
    default: return StridedInterval::unknown();
  }
}

StridedInterval Formula::operation_range(const Expr& e, const Box& box) const {
  const bool reals =
      std::ranges::any_of(e.operands, [](const ExprPtr& o) { return !is_integral(*o); }) || !is_integral(e);
  if (reals) {
    if (is_single(e, box) && is_integral(e)) return StridedInterval::single(exact(e, box).as_integer());
    return e.type == Scalar::boolean ? StridedInterval{0, 1, 1} : StridedInterval::unknown();
  }
  const StridedInterval a = range_of(*e.operands[0], box);
  if (e.operation == Operation::convert) {
    const StridedInterval out = clamp_to_type(a, e.type);
    if (out.is_single() || !a.is_single()) return out;
    const ScalarValue value = convert(ScalarValue::integer(a.lo), e.operands[0]->type);
    return StridedInterval::single(convert(value, e.type).as_integer());
  }
  const StridedInterval b = e.operands.size() > 1 ? range_of(*e.operands[1], box) : a;
  const StridedInterval c = e.operands.size() > 2 ? range_of(*e.operands[2], box) : b;
  if (a.is_single() && b.is_single() && c.is_single()) {
    if (e.operation == Operation::select) return a.lo != 0 ? b : c;
    if (is_comparison(e.operation)) return apply_interval(e.operation, a, b, c);
    if (e.operation == Operation::logical_not) return StridedInterval::single(a.lo == 0 ? 1 : 0);
    if (e.type != Scalar::i64 || !e.is_index)
      return is_single(e, box) ? StridedInterval::single(exact(e, box).as_integer())
                               : clamp_to_type(StridedInterval::unknown(), e.type);
    return StridedInterval::single(apply_index(e.operation, a.lo, b.lo, e.span));
  }
  const StridedInterval out = clamp_to_type(apply_interval(e.operation, a, b, c), e.type);
  return e.type == Scalar::boolean && !is_comparison(e.operation)
             ? StridedInterval{std::max<std::int64_t>(out.lo, 0), std::min<std::int64_t>(out.hi, 1),
                               out.is_single() ? 0 : 1}
             : out;
}

StridedInterval Formula::element_range(const Expr& e, const Box& box) const {
  if (!is_integral(e)) return StridedInterval::unknown();
  if (is_single(e, box)) return StridedInterval::single(exact(e, box).as_integer());
  const StridedInterval hull = hull_of(e);
  if (!hull.is_single() || is_surely_inside(e, box)) return hull;
  // One value, but perhaps not in every environment: a subscript outside is for evaluation to find.
  return hull.lo == INT64_MAX ? StridedInterval::unknown() : StridedInterval::between(hull.lo, hull.lo + 1);
}

/// Whether no subscript can be outside the buffer in any environment of the box.
bool Formula::is_surely_inside(const Expr& e, const Box& box) const {
  const Layout& layout = knowing_.state->layouts[static_cast<std::size_t>(e.id)];
  for (std::size_t d = 0; d < e.subscripts.size(); ++d) {
    const Subscript& s = e.subscripts[d];
    const auto within = [&](const ExprPtr& part, std::int64_t least, std::int64_t most) {
      const StridedInterval at = part ? guarded_range(*part, box) : StridedInterval::single(least);
      return at.lo >= least && at.hi <= most;
    };
    if (!within(s.lo, 0, s.is_slice ? layout.shape[d] : layout.shape[d] - 1)) return false;
    if (s.is_slice && !(within(s.hi, 0, layout.shape[d]) && within(s.step, 1, INT64_MAX))) return false;
  }
  return true;
}

/// The smallest and largest of all elements.
StridedInterval Formula::hull_of(const Expr& e) const {
  const auto known = hulls_.find(e.id);
  if (known != hulls_.end()) return known->second;
  StridedInterval hull = StridedInterval::unknown();
  const Layout& layout = knowing_.state->layouts[static_cast<std::size_t>(e.id)];
  const std::byte* contents = knowing_.state->contents[static_cast<std::size_t>(e.id)];
  if (contents && layout.extent > 0 && e.field < 0) {
    const bool is_boolean = e.type == Scalar::boolean;
    with_integer(is_boolean ? Scalar::u8 : e.type, [&]<class T>() {
      T lo = std::numeric_limits<T>::max(), hi = std::numeric_limits<T>::min();
      for (std::int64_t k = 0; k < layout.extent; ++k) {
        T value;
        std::memcpy(&value, contents + sizeof(T) * static_cast<std::size_t>(k), sizeof value);
        lo = std::min(lo, value);
        hi = std::max(hi, value);
      }
      hull = StridedInterval::between(lo, hi);
    });
    // A boolean from outside may hold any byte.
    if (is_boolean)
      hull = StridedInterval::between(std::min<std::int64_t>(hull.lo, 1), std::min<std::int64_t>(hull.hi, 1));
  }
  hulls_[e.id] = hull;
  return hull;
}

std::optional<Formula::Affine> Formula::affine(const Expr& e, const Box& box) const {
  const std::size_t numbers = box.positions.size();
  const auto constant = [&](std::int64_t v) { return Affine{v, std::vector<std::int64_t>(numbers, 0)}; };
  if (!is_integral(e)) return std::nullopt;
  if (const StridedInterval range = guarded_range(e, box); range.is_single()) return constant(range.lo);
  const auto number_form = [&](std::size_t n) -> std::optional<Affine> {
    if (!box.sets[n].is_known || box.sets[n].list) return std::nullopt;
    Affine out = constant(value_at(box, n, box.positions[n].first));
    out.coefficients[n] = box.sets[n].step * box.positions[n].step;
    return out;
  };
  const auto combine = [&](const Affine& a, const Affine& b, std::int64_t factor) -> std::optional<Affine> {
    Affine out = a;
    std::int64_t term = 0;
    if (__builtin_mul_overflow(b.constant, factor, &term) || __builtin_add_overflow(a.constant, term, &out.constant))
      return std::nullopt;
    for (std::size_t n = 0; n < numbers; ++n)
      if (__builtin_mul_overflow(b.coefficients[n], factor, &term) ||
          __builtin_add_overflow(a.coefficients[n], term, &out.coefficients[n]))
        return std::nullopt;
    return out;
  };
  if (e.kind == ExprKind::rank) return number_form(evaluator);
  if (e.kind == ExprKind::variable) {
    const Expr* binding = binding_of(e.id);
    return binding ? affine(*binding, box) : number_form(static_cast<std::size_t>(e.id) + 1);
  }
  if (e.kind == ExprKind::conditional || (e.kind == ExprKind::operation && e.operation == Operation::select)) {
    const StridedInterval c = guarded_range(*e.operands[0], box);
    return c.is_single() ? affine(*e.operands[c.lo != 0 ? 1 : 2], box) : std::nullopt;
  }
  if (e.kind != ExprKind::operation || e.type != Scalar::i64) return std::nullopt;
  const auto a = affine(*e.operands[0], box);
  if (!a) return std::nullopt;
  if (e.operation == Operation::neg) return combine(constant(0), *a, -1);
  if (e.operation == Operation::convert) return a;
  if (e.operands.size() != 2) return std::nullopt;
  const auto b = affine(*e.operands[1], box);
  if (!b) return std::nullopt;
  const auto is_constant = [&](const Affine& f) {
    return std::ranges::all_of(f.coefficients, [](std::int64_t c) { return c == 0; });
  };
  switch (e.operation) {
    case Operation::add: return combine(*a, *b, 1);
    case Operation::sub: return combine(*a, *b, -1);
    case Operation::mul:
      if (is_constant(*b)) return combine(constant(0), *a, b->constant);
      return is_constant(*a) ? combine(constant(0), *b, a->constant) : std::nullopt;
    case Operation::div:
    case Operation::mod: {
      if (!is_constant(*b) || b->constant <= 0) return std::nullopt;
      const std::int64_t m = b->constant;
      const StridedInterval range = guarded_range(*e.operands[0], box);
      const Wide period = floor_div(range.lo, m);
      if (period == floor_div(range.hi, m))  // within one period: x % m = x - period * m
        return e.operation == Operation::mod ? combine(*a, constant(static_cast<std::int64_t>(period)), -m)
                                             : constant(static_cast<std::int64_t>(period));
      if (!std::ranges::all_of(a->coefficients, [&](std::int64_t c) { return c % m == 0; })) return std::nullopt;
      Affine out = constant(0);
      const auto quotient = static_cast<std::int64_t>(floor_div(a->constant, m));
      out.constant = e.operation == Operation::div ? quotient : a->constant - quotient * m;
      if (e.operation == Operation::div)
        for (std::size_t n = 0; n < numbers; ++n) out.coefficients[n] = a->coefficients[n] / m;
      return out;
    }
    default: return std::nullopt;
  }
}

bool Formula::narrow(const Expr& e, const StridedInterval& wanted, Box& box) const {
  if (!is_integral(e)) return true;
  const StridedInterval range = guarded_range(e, box);
  if (are_disjoint(range, wanted)) return false;
  if (range.is_single()) return wanted.contains(range.lo);
  if (const auto form = affine(e, box)) {
    std::size_t open = box.positions.size();
    int count = 0;
    for (std::size_t n = 0; n < box.positions.size(); ++n)
      if (form->coefficients[n] != 0 && box.positions[n].count > 1) open = n, ++count;
    if (count == 1) return restrict_to(box.positions[open], form->constant, form->coefficients[open], wanted);
  }
  if (e.kind == ExprKind::variable && binding_of(e.id)) return narrow(*binding_of(e.id), wanted, box);
  if (e.kind != ExprKind::operation) return true;
  // Arithmetic of narrow types wraps: what the result is says little about the operands.
  if (e.operation != Operation::convert && is_integer(e.type) && e.type != Scalar::i64 &&
      range == clamp_to_type(StridedInterval::unknown(), e.type))
    return true;
  const auto operand_range = [&](std::size_t k) { return guarded_range(*e.operands[k], box); };
  switch (e.operation) {
    case Operation::add: {
      // Each summand bounds the other, by what is left of it: in q * 100 + r = 250 with r in 0 ... 99, q * 100 is 200,
      // and so r is 50.
      const auto b = met(operand_range(1), add(wanted, negate(operand_range(0))));
      const auto a = b ? met(operand_range(0), add(wanted, negate(*b))) : std::nullopt;
      return a && narrow(*e.operands[0], add(wanted, negate(*b)), box) &&
             narrow(*e.operands[1], add(wanted, negate(*a)), box);
    }
    case Operation::sub:
      return narrow(*e.operands[0], add(wanted, operand_range(1)), box) &&
             narrow(*e.operands[1], add(operand_range(0), negate(wanted)), box);
    case Operation::neg: return narrow(*e.operands[0], negate(wanted), box);
    case Operation::convert: {
      // Where a value does not fit, several become one: nothing can be said of the operand.
      const StridedInterval r = operand_range(0);
      return e.type == Scalar::boolean || !(clamp_to_type(r, e.type) == r) || narrow(*e.operands[0], wanted, box);
    }
    case Operation::div: {
      const StridedInterval m = operand_range(1);
      if (!m.is_single() || m.lo <= 0) return true;
      const StridedInterval first = multiply(StridedInterval::between(wanted.lo, wanted.hi), m);
      return narrow(*e.operands[0], add(first, StridedInterval::between(0, m.lo - 1)), box);
    }
    case Operation::mod: {
      const StridedInterval m = operand_range(1), x = operand_range(0);
      if (!m.is_single() || m.lo <= 0 || x == StridedInterval::unknown()) return true;
      const Wide period = floor_div(x.lo, m.lo);
      if (period == floor_div(x.hi, m.lo))
        return narrow(*e.operands[0], add(wanted, StridedInterval::single(static_cast<std::int64_t>(period) * m.lo)),
                      box);
      if (!wanted.is_single()) return true;
      // The dividend is in one residue class: from the first of it at or above x.lo to the last at or below x.hi.
      const auto offset = static_cast<std::int64_t>(((static_cast<Wide>(wanted.lo) - x.lo) % m.lo + m.lo) % m.lo);
      const Wide first = static_cast<Wide>(x.lo) + offset;
      if (first > x.hi) return false;
      const auto last = static_cast<std::int64_t>(first + (x.hi - first) / m.lo * m.lo);
      return narrow(*e.operands[0], {static_cast<std::int64_t>(first), last, last == first ? 0 : m.lo}, box);
    }
    default: return true;
  }
}

bool Formula::narrow_equal(const Expr& a, const Expr& b, Box& box) const {
  return narrow(a, guarded_range(b, box), box) && narrow(b, guarded_range(a, box), box);
}

bool Formula::narrow_true(const Expr& e, Box& box) const {
  if (e.kind == ExprKind::logical_and) return narrow_true(*e.operands[0], box) && narrow_true(*e.operands[1], box);
  if (e.kind != ExprKind::operation || !is_comparison(e.operation)) return true;
  const Expr& a = *e.operands[0];
  const Expr& b = *e.operands[1];
  if (!is_integral(a) || !is_integral(b)) return true;
  const StridedInterval ra = guarded_range(a, box), rb = guarded_range(b, box);
  const auto at_most = [](std::int64_t v) { return StridedInterval::between(INT64_MIN, v); };
  const auto at_least = [](std::int64_t v) { return StridedInterval::between(v, INT64_MAX); };
  const auto below = [](std::int64_t v) { return v == INT64_MIN ? v : v - 1; };
  const auto above = [](std::int64_t v) { return v == INT64_MAX ? v : v + 1; };
  switch (e.operation) {
    case Operation::eq: return narrow_equal(a, b, box);
    case Operation::le: return narrow(a, at_most(rb.hi), box) && narrow(b, at_least(ra.lo), box);
    case Operation::lt: return narrow(a, at_most(below(rb.hi)), box) && narrow(b, at_least(above(ra.lo)), box);
    case Operation::ge: return narrow(a, at_least(rb.lo), box) && narrow(b, at_most(ra.hi), box);
    case Operation::gt: return narrow(a, at_least(above(rb.lo)), box) && narrow(b, at_most(below(ra.hi)), box);
    default: return true;
  }
}

}  // namespace kplan
