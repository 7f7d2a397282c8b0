#include "engine/analysis/strided_interval.hpp"

#include <algorithm>
#include <numeric>

#include "plans/evaluate.hpp"

namespace kplan {
namespace {

bool fits(Wide v) { return v >= INT64_MIN && v <= INT64_MAX; }

/// The interval with these ends, or unknown when they leave 64 bits: index arithmetic that overflows is an error, found
/// when single values are evaluated.
StridedInterval make(Wide lo, Wide hi, std::int64_t step) {
  if (!fits(lo) || !fits(hi)) return StridedInterval::unknown();
  if (lo == hi) step = 0;
  return {static_cast<std::int64_t>(lo), static_cast<std::int64_t>(hi), step};
}

std::int64_t gcd(std::int64_t a, std::int64_t b) { return std::gcd(a, b); }

StridedInterval truth(bool can_be_false, bool can_be_true) {
  return can_be_false && can_be_true ? StridedInterval{0, 1, 1} : StridedInterval::single(can_be_true ? 1 : 0);
}

StridedInterval compare(Operation op, const StridedInterval& a, const StridedInterval& b) {
  switch (op) {
    case Operation::eq: return truth(!(a.is_single() && b.is_single() && a.lo == b.lo), !are_disjoint(a, b));
    case Operation::ne: return truth(!are_disjoint(a, b), !(a.is_single() && b.is_single() && a.lo == b.lo));
    case Operation::lt: return truth(a.hi >= b.lo, a.lo < b.hi);
    case Operation::le: return truth(a.hi > b.lo, a.lo <= b.hi);
    case Operation::gt: return compare(Operation::lt, b, a);
    default: return compare(Operation::le, b, a);
  }
}

}  // namespace

StridedInterval add(const StridedInterval& a, const StridedInterval& b) {
  return make(static_cast<Wide>(a.lo) + b.lo, static_cast<Wide>(a.hi) + b.hi, gcd(a.step, b.step));
}

StridedInterval negate(const StridedInterval& a) {
  return make(-static_cast<Wide>(a.hi), -static_cast<Wide>(a.lo), a.step);
}

StridedInterval multiply(const StridedInterval& a, const StridedInterval& b) {
  const StridedInterval& constant = a.is_single() ? a : b;
  const StridedInterval& other = a.is_single() ? b : a;
  if (constant.is_single()) {
    const Wide x = static_cast<Wide>(other.lo) * constant.lo, y = static_cast<Wide>(other.hi) * constant.lo;
    const Wide step = static_cast<Wide>(other.step) * (constant.lo < 0 ? -static_cast<Wide>(constant.lo) : constant.lo);
    if (!fits(step)) return StridedInterval::unknown();
    return make(std::min(x, y), std::max(x, y), static_cast<std::int64_t>(step));
  }
  const Wide corners[] = {static_cast<Wide>(a.lo) * b.lo, static_cast<Wide>(a.lo) * b.hi,
                          static_cast<Wide>(a.hi) * b.lo, static_cast<Wide>(a.hi) * b.hi};
  return make(*std::ranges::min_element(corners), *std::ranges::max_element(corners), 1);
}

StridedInterval divide(const StridedInterval& a, const StridedInterval& b) {
  if (b.contains(0)) return StridedInterval::unknown();
  if (!b.is_single()) {
    if (b.lo < 0) return StridedInterval::unknown();
    const Wide corners[] = {floor_div(a.lo, b.lo), floor_div(a.lo, b.hi), floor_div(a.hi, b.lo), floor_div(a.hi, b.hi)};
    return make(*std::ranges::min_element(corners), *std::ranges::max_element(corners), 1);
  }
  const Wide x = floor_div(a.lo, b.lo), y = floor_div(a.hi, b.lo);
  const std::int64_t step = a.step % b.lo == 0 ? std::abs(a.step / b.lo) : 1;
  return make(std::min(x, y), std::max(x, y), step);
}

StridedInterval modulo(const StridedInterval& a, const StridedInterval& b) {
  if (b.contains(0) || b.lo < 0) return StridedInterval::unknown();
  if (!b.is_single()) return StridedInterval::between(0, b.hi - 1);
  const std::int64_t m = b.lo;
  const Wide period = floor_div(a.lo, m);
  if (period == floor_div(a.hi, m)) return make(a.lo - period * m, a.hi - period * m, a.step);
  const std::int64_t step = gcd(a.step, m);
  const auto residue = static_cast<std::int64_t>(a.lo - period * m) % step;
  return make(residue, residue + (m - 1 - residue) / step * step, step);
}

StridedInterval unite(const StridedInterval& a, const StridedInterval& b) {
  const Wide distance = static_cast<Wide>(a.lo) - b.lo;
  const Wide apart = distance < 0 ? -distance : distance;
  const std::int64_t step = fits(apart) ? gcd(gcd(a.step, b.step), static_cast<std::int64_t>(apart)) : 1;
  return make(std::min(a.lo, b.lo), std::max(a.hi, b.hi), step == 0 ? 1 : step);
}

bool are_disjoint(const StridedInterval& a, const StridedInterval& b) {
  if (a.lo > b.hi || b.lo > a.hi) return true;
  const std::int64_t g = gcd(a.step, b.step);
  return g > 1 && (static_cast<Wide>(a.lo) - b.lo) % g != 0;
}

bool follows_intervals(Operation op) {
  return (op >= Operation::add && op <= Operation::max) || op == Operation::convert || op == Operation::neg ||
         op == Operation::select || op == Operation::logical_not || is_comparison(op);
}

StridedInterval apply_interval(Operation op, const StridedInterval& a, const StridedInterval& b,
                               const StridedInterval& c) {
  if (is_comparison(op)) return compare(op, a, b);
  switch (op) {
    case Operation::add: return add(a, b);
    case Operation::sub: return add(a, negate(b));
    case Operation::mul: return multiply(a, b);
    case Operation::neg: return negate(a);
    case Operation::div: return divide(a, b);
    case Operation::mod: return modulo(a, b);
    case Operation::ceil_div: return negate(divide(negate(a), b));
    case Operation::min: return make(std::min(a.lo, b.lo), std::min(a.hi, b.hi), 1);
    case Operation::max: return make(std::max(a.lo, b.lo), std::max(a.hi, b.hi), 1);
    case Operation::logical_not: return truth(a.hi != 0 || a.lo != 0, a.contains(0));
    case Operation::select: return a.is_single() ? (a.lo != 0 ? b : c) : unite(b, c);
    default: return StridedInterval::unknown();
  }
}

}  // namespace kplan
