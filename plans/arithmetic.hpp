#pragma once
// The arithmetic of element values: one definition of every operation on every scalar type, total but for zero
// divisors. Integers wrap, as the machine's do. The reference interpreter and the interpreter of kernels call
// these functions; compiled kernels must give the same bits. So that they can, add, sub, mul, div, sqrt and f64 to f32
// give one NaN whatever the hardware's would be: quiet, positive, without payload.
//
// Index arithmetic (where-lists, ranks, subscripts) is stricter, overflow is an error there: see evaluate.hpp.

#include <cstdint>
#include <string>
#include <string_view>

#include "kplan/types.hpp"

namespace kplan {

/// Holds any sum or product of two 64-bit integers.
__extension__ typedef __int128 Wide;

enum class Operation : std::uint8_t {
  convert,  ///< one operand of any type to the result type: C++'s conversion; real to integer truncates and
            ///< saturates, NaN becomes 0; anything to bool is `!= 0`; real to complex has imaginary part 0
  neg,
  bit_not,
  logical_not,
  add,
  sub,
  mul,
  div,  ///< integers: floor division; a negative divisor too (as in Python). Real, complex: the quotient
  mod,  ///< integers: a - b * div(a, b); has the sign of b
  ceil_div,
  min,  ///< b < a ? b : a
  max,  ///< a < b ? b : a
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,  ///< integers: the count modulo the width; shr of a signed value keeps its sign
  eq,
  ne,
  lt,
  le,
  gt,
  ge,      ///< two operands of one type, the result is boolean; complex: eq and ne only
  select,  ///< boolean, a, b: a if true
  abs,
  log2,      ///< integers: floor of the logarithm; -1 (unsigned: all ones) for arguments below 1
  pow2,      ///< integers: 1 shifted by the argument; 0 where that does not fit the type
  popcount,  ///< integers: number of bits set
  sqrt,      ///< f32, f64
};

std::string_view name_of(Operation op);
/// 1, 2 or 3.
int operand_count(Operation op);
constexpr bool is_comparison(Operation op) { return op >= Operation::eq && op <= Operation::ge; }
constexpr bool is_shift(Operation op) { return op == Operation::shl || op == Operation::shr; }
constexpr bool divides(Operation op) {
  return op == Operation::div || op == Operation::mod || op == Operation::ceil_div;
}
/// Of what indices and conditions on them are mostly made; loops over columns of integers have these.
constexpr bool is_index_operation(Operation op) {
  const bool is_one = (op >= Operation::add && op <= Operation::mod) || op == Operation::min || op == Operation::max ||
                      (op >= Operation::bit_and && op <= Operation::shr);
  return is_one || is_comparison(op);
}

/// One scalar: its object representation in the low bytes (c128: real, imaginary); the bytes above are zero.
struct ScalarValue {
  Scalar type = Scalar::i64;
  std::uint64_t bits[2] = {0, 0};

  static ScalarValue integer(std::int64_t v);
  static ScalarValue real(double v);
  static ScalarValue boolean(bool v);
  /// Reads an element from memory of any alignment.
  static ScalarValue load(Scalar type, const void* from);
  void store(void* to) const;

  std::int64_t as_integer() const;  ///< for bool and integers (u64: the same bits)
  double as_real() const;           ///< for bool, integers and reals; the real part of a complex number
  bool as_boolean() const { return bits[0] != 0 || bits[1] != 0; }  ///< for bool and integers
  bool operator==(const ScalarValue&) const = default;
};

/// `i64 7`, `f32 0.1`, `(1, -2)`; reals in the shortest form that reads back to the same bits.
std::string to_text(const ScalarValue& v);

/// The same, but a real always reads back as a real: `4.0`.
std::string to_literal(const ScalarValue& v);
/// An integer as an expression: the least one is no literal with a sign.
std::string to_expression(std::int64_t v);

/// Applies `op`; the operands have the types that the operation asks for. `result` has type `type`.
/// Returns false for a zero divisor of an integer division (`result` is then 0), else true.
bool apply(Operation op, Scalar type, const ScalarValue& a, const ScalarValue& b, const ScalarValue& c,
           ScalarValue& result);

inline bool apply(Operation op, Scalar type, const ScalarValue& a, ScalarValue& result) {
  return apply(op, type, a, a, a, result);
}
inline bool apply(Operation op, Scalar type, const ScalarValue& a, const ScalarValue& b, ScalarValue& result) {
  return apply(op, type, a, b, b, result);
}

/// The conversion as a value.
ScalarValue convert(const ScalarValue& v, Scalar to);

/// Whether every value of `from` is a value of `to` (section 4's widening conversions, and identity).
bool converts_losslessly(Scalar from, Scalar to);

/// Whether a literal can stand for a value of the type: an integer that the type has exactly; a real as near as the
/// type comes to it, if that is finite. Booleans are 0 and 1.
bool fits_type(const ScalarValue& literal, Scalar type);

/// Whether a value of any type is still itself as one of `type`: of integers and booleans exactly; reals may be rounded
/// to other reals, as long as they stay finite.
bool keeps_value(const ScalarValue& value, Scalar type);

}  // namespace kplan
