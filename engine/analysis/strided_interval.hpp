#pragma once
// Sets of integers as lo, lo + step, ..., hi: the abstract values with which where-lists are evaluated for many
// environments at once. Operations give a set that holds every possible result, exact wherever a single residue
// class stays one. (Strided intervals: Balakrishnan and Reps, Analyzing Memory Accesses in x86 Executables, 2004.)

#include <cstdint>

#include "plans/arithmetic.hpp"

namespace kplan {

/// step is 0 for a single value, and positive otherwise; (hi - lo) is a multiple of step. Ends saturate: `unknown`
/// stands for all 64-bit integers.
struct StridedInterval {
  std::int64_t lo = 0, hi = 0, step = 0;

  static StridedInterval single(std::int64_t v) { return {v, v, 0}; }
  static StridedInterval between(std::int64_t lo, std::int64_t hi) { return {lo, hi, lo == hi ? 0 : 1}; }
  static StridedInterval unknown() { return {INT64_MIN, INT64_MAX, 1}; }
  bool is_single() const { return lo == hi; }
  bool contains(std::int64_t v) const {
    return v >= lo && v <= hi && (step <= 1 || (static_cast<Wide>(v) - lo) % step == 0);
  }
  bool operator==(const StridedInterval&) const = default;
};

/// The quotient rounded down; b is not 0.
inline Wide floor_div(Wide a, Wide b) {
  const Wide q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

StridedInterval add(const StridedInterval& a, const StridedInterval& b);
StridedInterval negate(const StridedInterval& a);
StridedInterval multiply(const StridedInterval& a, const StridedInterval& b);
/// Floor division and its remainder; unknown where the divisor may be zero.
StridedInterval divide(const StridedInterval& a, const StridedInterval& b);
StridedInterval modulo(const StridedInterval& a, const StridedInterval& b);
StridedInterval unite(const StridedInterval& a, const StridedInterval& b);
/// Whether the sets surely have no common element.
bool are_disjoint(const StridedInterval& a, const StridedInterval& b);
/// Whether intervals say more of the operation's result on integers than the type does.
bool follows_intervals(Operation op);
/// Any other operation, on booleans as 0 and 1; exact for single values, else safe bounds.
StridedInterval apply_interval(Operation op, const StridedInterval& a, const StridedInterval& b,
                               const StridedInterval& c);

}  // namespace kplan
