// How it works: the ranges of an expression's operands in a box rule out the faults that its operations can have; where
// a condition guards a part, in the smaller box in which it can hold.
#include <algorithm>

#include "engine/analysis/formula.hpp"

namespace kplan {

bool Formula::is_safe(const Expr& e, const Box& box) const {
  switch (e.kind) {
    case ExprKind::element:
      for (const Subscript& s : e.subscripts)
        for (const auto* part : {&s.lo, &s.hi, &s.step})
          if (*part && !is_safe(**part, box)) return false;
      return knowing_.state->contents[static_cast<std::size_t>(e.id)] && is_surely_inside(e, box);
    case ExprKind::logical_and:
    case ExprKind::conditional:
      return is_safe(*e.operands[0], box) && is_safe_where(*e.operands[0], *e.operands[1], box) &&
             (e.kind == ExprKind::logical_and || is_safe(*e.operands[2], box));
    case ExprKind::logical_or: return is_safe(*e.operands[0], box) && is_safe(*e.operands[1], box);
    case ExprKind::operation:
      return std::ranges::all_of(e.operands, [&](const ExprPtr& o) { return is_safe(*o, box); }) &&
             is_safe_operation(e, box);
    default: return true;
  }
}

/// The same where `condition` holds.
bool Formula::is_safe_where(const Expr& condition, const Expr& e, const Box& box) const {
  Box part = box;
  return !narrow_true(condition, part) || is_safe(e, part);
}

/// Whether the operation cannot fail on values that its operands can take. Sources: apply_index, apply.
bool Formula::is_safe_operation(const Expr& e, const Box& box) const {
  const auto range = [&](std::size_t k) {
    return is_integral(*e.operands[k]) ? guarded_range(*e.operands[k], box) : StridedInterval::unknown();
  };
  if (divides(e.operation)) {
    if (!is_integer(e.type) || e.record) return true;
    const StridedInterval divisor = range(1);
    return !divisor.contains(0) && (!e.is_index || !divisor.contains(-1) || range(0).lo > INT64_MIN);
  }
  if (!e.is_index || e.type != Scalar::i64) return true;
  switch (e.operation) {
    case Operation::add:
    case Operation::sub:
    case Operation::mul:
    case Operation::neg:
      return apply_interval(e.operation, range(0), range(e.operands.size() - 1), range(0)) !=
             StridedInterval::unknown();
    case Operation::abs: return range(0).lo > INT64_MIN;
    case Operation::shl: {
      const StridedInterval value = range(0), bits = range(1);
      return bits.lo >= 0 && bits.hi <= 63 && value.hi <= (INT64_MAX >> bits.hi) && value.lo >= (INT64_MIN >> bits.hi);
    }
    case Operation::shr: return range(1).lo >= 0;
    case Operation::pow2: return range(0).lo >= 0 && range(0).hi <= 62;
    case Operation::log2: return range(0).lo >= 1;
    default: return true;
  }
}

bool Formula::is_safe(const Set& s, const Box& box) const {
  for (const auto* e : {&s.first, &s.last, &s.step, &s.buffer})
    if (*e && !is_safe(**e, box)) return false;
  for (const auto& e : s.elements)
    if (!is_safe(*e, box)) return false;
  if (s.buffer && knowing_.state->layouts[static_cast<std::size_t>(s.buffer->id)].extent > largest_selection)
    return false;
  if (s.kind != Set::Kind::range) return true;
  const StridedInterval a = guarded_range(*s.first, box), b = guarded_range(*s.last, box);
  const Wide width = std::max(static_cast<Wide>(b.hi) - a.lo, static_cast<Wide>(a.hi) - b.lo);
  return width < largest_set && (!s.step || !guarded_range(*s.step, box).contains(0));
}

}  // namespace kplan
