// apply() against expectations computed in wider types, or written down, for every scalar type.
#include "plans/arithmetic.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

namespace kplan::test {
namespace {

template <class T>
ScalarValue value(T x) {
  return ScalarValue::load(scalar_of<T>, &x);
}
template <class T>
T number(const ScalarValue& v) {
  REQUIRE(v.type == scalar_of<T>);
  T out;
  v.store(&out);
  return out;
}
template <class T>
T result(Operation op, T a, T b) {
  ScalarValue out;
  REQUIRE(apply(op, scalar_of<T>, value(a), value(b), out));
  return number<T>(out);
}
template <class T>
bool comparison(Operation op, T a, T b) {
  ScalarValue out;
  REQUIRE(apply(op, Scalar::boolean, value(a), value(b), out));
  return number<bool>(out);
}
template <class To, class From>
To converted(From x) {
  return number<To>(convert(value(x), scalar_of<To>));
}

/// The low bits of a number of 128 bits, as the type holds them.
template <class T>
T wrapped(Wide x) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x));
}

/// Division rounding down, from the definition: the largest q with q * b <= a (b > 0), mirrored for b < 0.
Wide floor_quotient(Wide a, Wide b) {
  Wide q = a / b;
  while ((b > 0 && q * b > a) || (b < 0 && q * b < a)) --q;
  return q;
}

template <class T>
std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_signed_v<T>)
    return {0,
            1,
            2,
            3,
            7,
            L::max(),
            static_cast<T>(L::max() - 1),
            static_cast<T>(L::max() / 2),
            -1,
            -2,
            -7,
            L::min(),
            static_cast<T>(L::min() + 1)};
  else return {0, 1, 2, 3, 7, L::max(), static_cast<T>(L::max() - 1), static_cast<T>(L::max() / 2)};
}

}  // namespace

#define KPLAN_INTEGERS \
  std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t

TEMPLATE_TEST_CASE("integers wrap, whatever their width", "[plans][arithmetic]", KPLAN_INTEGERS) {
  using T = TestType;
  for (const T a : edges<T>()) {
    CHECK(result<T>(Operation::neg, a, a) == wrapped<T>(-Wide(a)));
    CHECK(result<T>(Operation::abs, a, a) ==
          wrapped<T>(a < 0 ? -Wide(a) : Wide(a)));  // abs of the least value is itself
    CHECK(result<T>(Operation::bit_not, a, a) == wrapped<T>(-Wide(a) - 1));
    for (const T b : edges<T>()) {
      CHECK(result<T>(Operation::add, a, b) == wrapped<T>(Wide(a) + Wide(b)));
      CHECK(result<T>(Operation::sub, a, b) == wrapped<T>(Wide(a) - Wide(b)));
      CHECK(
          result<T>(Operation::mul, a, b) ==
          static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));  // the low bits are the same
      CHECK(result<T>(Operation::min, a, b) == std::min(a, b));
      CHECK(result<T>(Operation::max, a, b) == std::max(a, b));
      CHECK(result<T>(Operation::bit_and, a, b) == static_cast<T>(a & b));
      CHECK(result<T>(Operation::bit_or, a, b) == static_cast<T>(a | b));
      CHECK(result<T>(Operation::bit_xor, a, b) == static_cast<T>(a ^ b));
    }
  }
}

TEMPLATE_TEST_CASE("division rounds down, its remainder has the sign of the divisor, and the least value by -1 wraps",
                   "[plans][arithmetic]", KPLAN_INTEGERS) {
  using T = TestType;
  for (const T a : edges<T>())
    for (const T b : edges<T>()) {
      if (b == 0) {
        for (const Operation op : {Operation::div, Operation::mod, Operation::ceil_div}) {
          ScalarValue out = value(T(1));
          CHECK_FALSE(apply(op, scalar_of<T>, value(a), value(b), out));
          CHECK(number<T>(out) == 0);
        }
        continue;
      }
      const Wide q = floor_quotient(a, b);
      CHECK(result<T>(Operation::div, a, b) == wrapped<T>(q));
      CHECK(result<T>(Operation::mod, a, b) == wrapped<T>(Wide(a) - q * Wide(b)));
      CHECK(result<T>(Operation::ceil_div, a, b) == wrapped<T>(q + (q * Wide(b) != Wide(a) ? 1 : 0)));
    }
}

TEST_CASE("division of small numbers gives the numbers of the language page", "[plans][arithmetic]") {
  CHECK(result<std::int64_t>(Operation::mod, -1, 5) == 4);  // the left neighbour of rank 0 of 5
  CHECK(result<std::int64_t>(Operation::div, -7, 2) == -4);
  CHECK(result<std::int64_t>(Operation::div, 7, -2) == -4);
  CHECK(result<std::int64_t>(Operation::mod, 7, -2) == -1);
  CHECK(result<std::int64_t>(Operation::ceil_div, -7, 2) == -3);
  CHECK(result<std::int8_t>(Operation::div, -128, -1) == -128);
  CHECK(result<std::int64_t>(Operation::mod, INT64_MIN, -1) == 0);
}

TEMPLATE_TEST_CASE("shift counts are taken modulo the width, and shr keeps the sign", "[plans][arithmetic]",
                   KPLAN_INTEGERS) {
  using T = TestType;
  constexpr int width = static_cast<int>(sizeof(T) * 8);
  for (const T a : edges<T>())
    for (const int count : {0, 1, 3, width - 1, width, width + 1}) {
      const int taken = count % width;
      CHECK(result<T>(Operation::shl, a, static_cast<T>(count)) == wrapped<T>(Wide(a) * (Wide(1) << taken)));
      CHECK(result<T>(Operation::shr, a, static_cast<T>(count)) == wrapped<T>(floor_quotient(a, Wide(1) << taken)));
    }
}

TEMPLATE_TEST_CASE("logarithms, powers and bit counts agree with counting", "[plans][arithmetic]", KPLAN_INTEGERS) {
  using T = TestType;
  constexpr int width = static_cast<int>(sizeof(T) * 8);
  for (const T a : edges<T>()) {
    int floor_log = -1;
    for (Wide power = 1; power <= Wide(a); power *= 2) ++floor_log;
    CHECK(result<T>(Operation::log2, a, a) == static_cast<T>(floor_log));
    int bits = 0;
    for (int k = 0; k < width; ++k) bits += static_cast<int>((wrapped<std::make_unsigned_t<T>>(a) >> k) & 1u);
    CHECK(result<T>(Operation::popcount, a, a) == static_cast<T>(bits));
  }
  for (int k = 0; k <= width && k <= 100; ++k) {
    const bool fits = (Wide(1) << k) <= Wide(std::numeric_limits<T>::max());
    CHECK(result<T>(Operation::pow2, static_cast<T>(k), static_cast<T>(k)) == (fits ? wrapped<T>(Wide(1) << k) : T(0)));
  }
  if constexpr (std::is_signed_v<T>) CHECK(result<T>(Operation::pow2, static_cast<T>(-1), static_cast<T>(-1)) == 0);
}

TEMPLATE_TEST_CASE("comparisons order integers as numbers", "[plans][arithmetic]", KPLAN_INTEGERS) {
  using T = TestType;
  for (const T a : edges<T>())
    for (const T b : edges<T>()) {
      CHECK(comparison<T>(Operation::lt, a, b) == (Wide(a) < Wide(b)));
      CHECK(comparison<T>(Operation::le, a, b) == (Wide(a) <= Wide(b)));
      CHECK(comparison<T>(Operation::gt, a, b) == (Wide(a) > Wide(b)));
      CHECK(comparison<T>(Operation::ge, a, b) == (Wide(a) >= Wide(b)));
      CHECK(comparison<T>(Operation::eq, a, b) == (Wide(a) == Wide(b)));
      CHECK(comparison<T>(Operation::ne, a, b) == (Wide(a) != Wide(b)));
    }
}

TEMPLATE_TEST_CASE("reals become integers by truncation, saturate, and NaN becomes 0", "[plans][arithmetic]",
                   KPLAN_INTEGERS) {
  using T = TestType;
  using L = std::numeric_limits<T>;
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(converted<T>(2.99) == 2);
  CHECK(converted<T>(-0.99) == 0);
  CHECK(converted<T>(-2.99) == (std::is_signed_v<T> ? static_cast<T>(-2) : T(0)));
  CHECK(converted<T>(std::nan("")) == 0);
  CHECK(converted<T>(infinity) == L::max());
  CHECK(converted<T>(-infinity) == L::min());
  CHECK(converted<T>(1e300) == L::max());
  CHECK(converted<T>(-1e300) == L::min());
  CHECK(converted<T>(std::numeric_limits<float>::max()) == L::max());
  CHECK(converted<T>(std::nanf("")) == 0);
  // The first power of two beyond the type, and the number before it.
  const double beyond = std::ldexp(1.0, static_cast<int>(sizeof(T) * 8) - (std::is_signed_v<T> ? 1 : 0));
  CHECK(converted<T>(beyond) == L::max());
  const double before = std::nextafter(beyond, 0.0);
  CHECK(Wide(converted<T>(before)) == static_cast<Wide>(before));
  if constexpr (std::is_signed_v<T>) CHECK(converted<T>(-beyond) == L::min());
}

TEMPLATE_TEST_CASE(
    "integers become other integers by their low bits, reals by rounding, booleans by being other than zero",
    "[plans][arithmetic]", KPLAN_INTEGERS) {
  using T = TestType;
  for (const T a : edges<T>()) {
    CHECK(converted<std::int8_t>(a) == wrapped<std::int8_t>(a));
    CHECK(converted<std::uint16_t>(a) == wrapped<std::uint16_t>(a));
    CHECK(converted<std::int64_t>(a) == wrapped<std::int64_t>(a));
    CHECK(converted<std::uint64_t>(a) == wrapped<std::uint64_t>(a));
    CHECK(converted<double>(a) == static_cast<double>(a));
    CHECK(converted<float>(a) == static_cast<float>(a));
    CHECK(converted<bool>(a) == (a != 0));
    CHECK(converted<std::complex<double>>(a) == std::complex<double>(static_cast<double>(a), 0));
  }
  CHECK(converted<T>(true) == 1);
  CHECK(converted<T>(false) == 0);
}

TEMPLATE_TEST_CASE("reals follow IEEE 754, NaN and signed zeros included", "[plans][arithmetic]", float, double) {
  using T = TestType;
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const auto bits = [](T x) { return value(x).bits[0]; };
  for (const T a :
       {T(0), T(-0.0), T(1.5), T(-7.25), std::numeric_limits<T>::max(), std::numeric_limits<T>::denorm_min(), infinity})
    for (const T b : {T(0.1), T(-3), T(0), infinity}) {
      const auto same = [&](Operation op, T expected) {
        return bits(result<T>(op, a, b)) == bits(expected) || (std::isnan(result<T>(op, a, b)) && std::isnan(expected));
      };
      CHECK(same(Operation::add, a + b));
      CHECK(same(Operation::sub, a - b));
      CHECK(same(Operation::mul, a * b));
      CHECK(same(Operation::div, a / b));
    }
  CHECK(result<T>(Operation::div, 1, 0) == infinity);  // no error: only integers have none
  CHECK(bits(result<T>(Operation::neg, 0, 0)) == bits(T(-0.0)));
  CHECK(bits(result<T>(Operation::abs, T(-0.0), 0)) == bits(T(0)));
  CHECK(result<T>(Operation::sqrt, T(2), 0) == std::sqrt(T(2)));
  CHECK(std::isnan(result<T>(Operation::sqrt, T(-1), 0)));
  CHECK_FALSE(comparison<T>(Operation::eq, nan, nan));
  CHECK(comparison<T>(Operation::ne, nan, nan));
  CHECK_FALSE(comparison<T>(Operation::le, nan, 1));
  // min is `b < a ? b : a` and max `a < b ? b : a`: NaN on the left stays, NaN on the right is passed over.
  CHECK(std::isnan(result<T>(Operation::min, nan, 1)));
  CHECK(result<T>(Operation::min, 1, nan) == 1);
  CHECK(std::isnan(result<T>(Operation::max, nan, 1)));
  CHECK(result<T>(Operation::max, 1, nan) == 1);
  CHECK(bits(result<T>(Operation::min, T(0), T(-0.0))) == bits(T(0)));
  CHECK(converted<bool>(nan));
  CHECK_FALSE(converted<bool>(T(-0.0)));
}

TEST_CASE("f64 becomes f32 by rounding to nearest, and overflows to infinity", "[plans][arithmetic]") {
  CHECK(converted<float>(0.1) == 0.1f);
  CHECK(converted<float>(1.0 + 0x1p-24) == 1.0f);  // a tie goes to the even neighbour
  CHECK(converted<float>(1e300) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(converted<float>(std::nan(""))));
  CHECK(converted<double>(0.1f) == static_cast<double>(0.1f));
}

TEMPLATE_TEST_CASE("complex numbers multiply and divide by the schoolbook formulas", "[plans][arithmetic]", float,
                   double) {
  using C = std::complex<TestType>;
  const C a(3, -2), b(TestType(0.5), 4);
  CHECK(result<C>(Operation::add, a, b) == C(TestType(3.5), 2));
  CHECK(result<C>(Operation::sub, a, b) == C(TestType(2.5), -6));
  CHECK(result<C>(Operation::mul, a, b) == C(TestType(1.5) + 8, 12 - 1));
  const TestType d = TestType(0.25) + 16;
  CHECK(result<C>(Operation::div, a, b) == C((TestType(1.5) - 8) / d, (TestType(-1) - 12) / d));
  CHECK(result<C>(Operation::neg, a, a) == C(-3, 2));
  CHECK(comparison<C>(Operation::eq, a, a));
  CHECK(comparison<C>(Operation::ne, a, C(3, 2)));
  CHECK(converted<TestType>(a) == 3);
  CHECK(converted<bool>(C(0, 1)));
  CHECK_FALSE(converted<bool>(C(0, 0)));
  CHECK(converted<std::complex<double>>(C(1, 2)) == std::complex<double>(1, 2));
}

TEST_CASE("booleans know and, or, exclusive or, not, order and choice", "[plans][arithmetic]") {
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      CHECK(result<bool>(Operation::bit_and, a, b) == (a && b));
      CHECK(result<bool>(Operation::bit_or, a, b) == (a || b));
      CHECK(result<bool>(Operation::bit_xor, a, b) == (a != b));
      CHECK(result<bool>(Operation::min, a, b) == (a && b));
      CHECK(result<bool>(Operation::max, a, b) == (a || b));
      CHECK(comparison<bool>(Operation::lt, a, b) == (!a && b));
    }
  CHECK(result<bool>(Operation::logical_not, true, true) == false);
  ScalarValue out;
  apply(Operation::select, Scalar::i32, ScalarValue::boolean(true), value(1), value(2), out);
  CHECK(number<std::int32_t>(out) == 1);
  apply(Operation::select, Scalar::i32, ScalarValue::boolean(false), value(1), value(2), out);
  CHECK(number<std::int32_t>(out) == 2);
}

TEST_CASE("a boolean read from memory that holds another byte than 0 or 1 is true", "[plans][arithmetic]") {
  const unsigned char byte = 6;
  CHECK(ScalarValue::load(Scalar::boolean, &byte) == ScalarValue::boolean(true));
}

TEST_CASE(
    "a conversion is lossless exactly where every value of a type of at most 16 bits survives it, and the wide types "
    "fit their rule",
    "[plans][arithmetic]") {
  const auto all_survive = [](Scalar from, Scalar to) {
    const int count = from == Scalar::boolean ? 2 : 1 << (8 * static_cast<int>(size_of(from)));
    for (int k = 0; k < count; ++k) {
      const ScalarValue v = convert(ScalarValue::integer(k), from), there = convert(v, to);
      if (!(convert(there, from) == v) || there.as_real() != v.as_real()) return false;
    }
    return true;
  };
  for (const Scalar from : {Scalar::i8, Scalar::i16, Scalar::u8, Scalar::u16})
    for (int t = static_cast<int>(Scalar::i8); t <= static_cast<int>(Scalar::c128); ++t) {
      INFO(name_of(from) << " to " << name_of(static_cast<Scalar>(t)));
      CHECK(converts_losslessly(from, static_cast<Scalar>(t)) == all_survive(from, static_cast<Scalar>(t)));
    }
  CHECK(converts_losslessly(Scalar::i32, Scalar::f64));
  CHECK_FALSE(converts_losslessly(Scalar::i32, Scalar::f32));
  CHECK_FALSE(converts_losslessly(Scalar::i64, Scalar::f64));
  CHECK_FALSE(converts_losslessly(Scalar::u64, Scalar::i64));
  CHECK_FALSE(converts_losslessly(Scalar::i64, Scalar::u64));
  CHECK(converts_losslessly(Scalar::u32, Scalar::i64));
  CHECK(converts_losslessly(Scalar::f32, Scalar::f64));
  CHECK_FALSE(converts_losslessly(Scalar::f64, Scalar::f32));
  CHECK(converts_losslessly(Scalar::f32, Scalar::c64));
  CHECK_FALSE(converts_losslessly(Scalar::f64, Scalar::c64));
  CHECK_FALSE(converts_losslessly(Scalar::c64, Scalar::f64));
  CHECK_FALSE(converts_losslessly(Scalar::f64, Scalar::i64));
  CHECK(converts_losslessly(Scalar::boolean, Scalar::u8));
}

TEST_CASE("reals are printed in the shortest form that reads back to the same bits", "[plans][arithmetic]") {
  CHECK(to_text(ScalarValue::real(0.1)) == "0.1");
  CHECK(to_text(value(0.1f)) == "0.1");
  CHECK(to_text(ScalarValue::integer(-7)) == "-7");
  CHECK(to_text(value(UINT64_MAX)) == "18446744073709551615");
  CHECK(to_text(ScalarValue::boolean(true)) == "true");
  CHECK(to_text(value(std::complex<double>(1, -2))) == "(1,-2)");
  for (const double x : {1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789012345680.0})
    CHECK(std::strtod(to_text(ScalarValue::real(x)).c_str(), nullptr) == x);
}

}  // namespace kplan::test
