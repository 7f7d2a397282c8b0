// How it works: apply() dispatches once on the type of the first operand into a template, which switches on the
// operation. Integers are computed in unsigned arithmetic of their width so that wrapping is defined.
#include "plans/arithmetic.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace kplan {
namespace {

template <class T>
T get(const ScalarValue& v) {
  T out;
  std::memcpy(&out, v.bits, sizeof(T));
  return out;
}

template <class T>
void put(ScalarValue& v, T x) {
  v.type = scalar_of<T>;
  v.bits[0] = v.bits[1] = 0;
  std::memcpy(v.bits, &x, sizeof(T));
}

template <class T>
inline constexpr bool is_complex_type =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// Calls f with a value of the C++ type of `s`.
template <class F>
void with_type(Scalar s, F f) {
  switch (s) {
    case Scalar::boolean: return f(bool{});
    case Scalar::i8: return f(std::int8_t{});
    case Scalar::i16: return f(std::int16_t{});
    case Scalar::i32: return f(std::int32_t{});
    case Scalar::i64: return f(std::int64_t{});
    case Scalar::u8: return f(std::uint8_t{});
    case Scalar::u16: return f(std::uint16_t{});
    case Scalar::u32: return f(std::uint32_t{});
    case Scalar::u64: return f(std::uint64_t{});
    case Scalar::f32: return f(float{});
    case Scalar::f64: return f(double{});
    case Scalar::c64: return f(std::complex<float>{});
    case Scalar::c128: return f(std::complex<double>{});
  }
}

template <class To, class From>
To converted(From x) {
  if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>) {
      using P = typename To::value_type;
      return To(converted<P>(x.real()), converted<P>(x.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return x.real() != 0 || x.imag() != 0;
    } else {
      return converted<To>(x.real());
    }
  } else if constexpr (is_complex_type<To>) {
    using P = typename To::value_type;
    return To(converted<P>(x), P(0));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x)) return To(0);
    // The largest To may round up to a power of two in From, hence >=.
    if (x >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (x <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(x);
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
    return std::isnan(x) ? std::numeric_limits<To>::quiet_NaN() : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class T>
T floor_div(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
    T q = static_cast<T>(a / b), r = static_cast<T>(a % b);
    return (r != 0 && (r < 0) != (b < 0)) ? static_cast<T>(q - 1) : q;
  } else {
    return static_cast<T>(a / b);
  }
}

template <class T>
T floor_mod(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
    T r = static_cast<T>(a % b);
    return (r != 0 && (r < 0) != (b < 0)) ? static_cast<T>(r + b) : r;
  } else {
    return static_cast<T>(a % b);
  }
}

template <class T>
bool apply_integer(Operation op, T a, T b, ScalarValue& out) {
  using U = std::make_unsigned_t<T>;
  // Arithmetic in a type at least as wide as unsigned int: narrower unsigned types would promote to int and overflow.
  using W = std::conditional_t<(sizeof(U) < sizeof(unsigned)), unsigned, U>;
  const W ua = static_cast<W>(a), ub = static_cast<W>(b);
  constexpr int width = static_cast<int>(sizeof(T) * 8);
  const int count = static_cast<int>(static_cast<U>(b) & static_cast<U>(width - 1));
  switch (op) {
    case Operation::neg: put(out, static_cast<T>(W(0) - ua)); return true;
    case Operation::bit_not: put(out, static_cast<T>(~ua)); return true;
    case Operation::add: put(out, static_cast<T>(ua + ub)); return true;
    case Operation::sub: put(out, static_cast<T>(ua - ub)); return true;
    case Operation::mul: put(out, static_cast<T>(ua * ub)); return true;
    case Operation::div:
      if (b == 0) return put(out, T(0)), false;
      put(out, floor_div(a, b));
      return true;
    case Operation::mod:
      if (b == 0) return put(out, T(0)), false;
      put(out, floor_mod(a, b));
      return true;
    case Operation::ceil_div:
      if (b == 0) return put(out, T(0)), false;
      put(out, static_cast<T>(static_cast<W>(floor_div(a, b)) + (floor_mod(a, b) != 0 ? W(1) : W(0))));
      return true;
    case Operation::bit_and: put(out, static_cast<T>(ua & ub)); return true;
    case Operation::bit_or: put(out, static_cast<T>(ua | ub)); return true;
    case Operation::bit_xor: put(out, static_cast<T>(ua ^ ub)); return true;
    case Operation::shl: put(out, static_cast<T>(static_cast<U>(ua << count))); return true;
    case Operation::shr: put(out, static_cast<T>(a >> count)); return true;
    case Operation::abs: put(out, a < T(0) ? static_cast<T>(W(0) - ua) : a); return true;
    case Operation::log2:
      put(out, a < T(1) ? static_cast<T>(-1) : static_cast<T>(width - 1 - std::countl_zero(static_cast<U>(a))));
      return true;
    case Operation::pow2: {
      constexpr int largest = std::is_signed_v<T> ? width - 2 : width - 1;
      const bool fits = a >= T(0) && a <= T(largest);
      put(out, fits ? static_cast<T>(W(1) << static_cast<int>(a)) : T(0));
      return true;
    }
    case Operation::popcount: put(out, static_cast<T>(std::popcount(static_cast<U>(a)))); return true;
    default: return put(out, T(0)), true;
  }
}

/// Stores the result of real arithmetic, any NaN as the one of arithmetic.hpp.
template <class T>
void put_real(ScalarValue& out, T x) {
  put(out, std::isnan(x) ? std::numeric_limits<T>::quiet_NaN() : x);
}

template <class C>
void put_complex(ScalarValue& out, typename C::value_type real, typename C::value_type imaginary) {
  constexpr auto nan = std::numeric_limits<typename C::value_type>::quiet_NaN();
  put(out, C(std::isnan(real) ? nan : real, std::isnan(imaginary) ? nan : imaginary));
}

template <class T>
void apply_real(Operation op, T a, T b, ScalarValue& out) {
  switch (op) {
    case Operation::neg: return put(out, -a);
    case Operation::add: return put_real(out, a + b);
    case Operation::sub: return put_real(out, a - b);
    case Operation::mul: return put_real(out, a * b);
    case Operation::div: return put_real(out, a / b);
    case Operation::abs: return put(out, std::fabs(a));
    case Operation::sqrt: return put_real(out, std::sqrt(a));
    default: return put(out, T(0));
  }
}

template <class C>
void apply_complex(Operation op, C a, C b, ScalarValue& out) {
  using P = typename C::value_type;
  const P ar = a.real(), ai = a.imag(), br = b.real(), bi = b.imag();
  switch (op) {
    case Operation::neg: return put(out, C(-ar, -ai));
    case Operation::add: return put_complex<C>(out, ar + br, ai + bi);
    case Operation::sub: return put_complex<C>(out, ar - br, ai - bi);
    case Operation::mul: return put_complex<C>(out, ar * br - ai * bi, ar * bi + ai * br);
    case Operation::div: {
      const P d = br * br + bi * bi;
      return put_complex<C>(out, (ar * br + ai * bi) / d, (ai * br - ar * bi) / d);
    }
    default: return put(out, C());
  }
}

template <class T>
bool compare(Operation op, T a, T b) {
  if constexpr (is_complex_type<T>) {
    const bool equal = a.real() == b.real() && a.imag() == b.imag();
    return op == Operation::eq ? equal : !equal;
  } else {
    switch (op) {
      case Operation::eq: return a == b;
      case Operation::ne: return a != b;
      case Operation::lt: return a < b;
      case Operation::le: return a <= b;
      case Operation::gt: return a > b;
      default: return a >= b;
    }
  }
}

template <class T>
bool apply_typed(Operation op, T a, T b, ScalarValue& out) {
  if (is_comparison(op)) return put(out, compare(op, a, b)), true;
  if constexpr (is_complex_type<T>) {
    return apply_complex(op, a, b, out), true;
  } else {
    if (op == Operation::min) return put(out, b < a ? b : a), true;
    if (op == Operation::max) return put(out, a < b ? b : a), true;
    if constexpr (std::is_same_v<T, bool>) {
      switch (op) {
        case Operation::bit_and: return put(out, a && b), true;
        case Operation::bit_or: return put(out, a || b), true;
        case Operation::bit_xor: return put(out, a != b), true;
        default: return put(out, !a), true;  // logical_not
      }
    } else if constexpr (std::is_floating_point_v<T>) {
      return apply_real(op, a, b, out), true;
    } else {
      return apply_integer(op, a, b, out);
    }
  }
}

bool is_finite(const ScalarValue& v) {
  double parts[2];
  convert(v, Scalar::c128).store(parts);
  return std::isfinite(parts[0]) && std::isfinite(parts[1]);
}

bool is_negative(const ScalarValue& v) { return is_signed_integer(v.type) && v.as_integer() < 0; }

template <class T>
std::string shortest(T x) {
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  return std::string(buffer, end);
}

}  // namespace

std::string_view name_of(Operation op) {
  static constexpr std::string_view names[] = {
      "convert", "neg", "bit_not", "logical_not", "add",     "sub",  "mul",  "div",      "mod", "ceil_div",
      "min",     "max", "bit_and", "bit_or",      "bit_xor", "shl",  "shr",  "eq",       "ne",  "lt",
      "le",      "gt",  "ge",      "select",      "abs",     "log2", "pow2", "popcount", "sqrt"};
  return names[static_cast<int>(op)];
}

int operand_count(Operation op) {
  switch (op) {
    case Operation::convert:
    case Operation::neg:
    case Operation::bit_not:
    case Operation::logical_not:
    case Operation::abs:
    case Operation::log2:
    case Operation::pow2:
    case Operation::popcount:
    case Operation::sqrt: return 1;
    case Operation::select: return 3;
    default: return 2;
  }
}

[[gnu::hot]] ScalarValue ScalarValue::integer(std::int64_t v) {
  ScalarValue out;
  put(out, v);
  return out;
}
ScalarValue ScalarValue::real(double v) {
  ScalarValue out;
  put(out, v);
  return out;
}
ScalarValue ScalarValue::boolean(bool v) {
  ScalarValue out;
  put(out, v);
  return out;
}

ScalarValue ScalarValue::load(Scalar type, const void* from) {
  ScalarValue out;
  out.type = type;
  std::memcpy(out.bits, from, size_of(type));
  if (type == Scalar::boolean) out.bits[0] = out.bits[0] != 0;  // a bool from outside may hold any byte
  return out;
}

void ScalarValue::store(void* to) const { std::memcpy(to, bits, size_of(type)); }

[[gnu::hot]] std::int64_t ScalarValue::as_integer() const {
  if (type == Scalar::i64) return static_cast<std::int64_t>(bits[0]);
  std::int64_t out = 0;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    if constexpr (!is_complex_type<T>) {
      if constexpr (std::is_floating_point_v<T>) out = converted<std::int64_t>(get<T>(*this));
      else if constexpr (std::is_same_v<T, bool>) out = bits[0] != 0;
      else out = static_cast<std::int64_t>(get<T>(*this));
    }
  });
  return out;
}

double ScalarValue::as_real() const {
  double out = 0;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    if constexpr (is_complex_type<T>) out = get<T>(*this).real();
    else if constexpr (std::is_same_v<T, bool>) out = bits[0] != 0 ? 1 : 0;
    else out = static_cast<double>(get<T>(*this));
  });
  return out;
}

std::string to_text(const ScalarValue& v) {
  if (v.type == Scalar::boolean) return v.as_boolean() ? "true" : "false";
  if (v.type == Scalar::u64) return std::to_string(v.bits[0]);
  if (is_integer(v.type)) return std::to_string(v.as_integer());
  if (v.type == Scalar::f32) return shortest(get<float>(v));
  if (v.type == Scalar::f64) return shortest(get<double>(v));
  if (v.type == Scalar::c64) {
    auto c = get<std::complex<float>>(v);
    return "(" + shortest(c.real()) + "," + shortest(c.imag()) + ")";
  }
  auto c = get<std::complex<double>>(v);
  return "(" + shortest(c.real()) + "," + shortest(c.imag()) + ")";
}

std::string to_literal(const ScalarValue& v) {
  const std::string text = to_text(v);
  return is_real(v.type) && text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string to_expression(std::int64_t v) {
  return v == INT64_MIN ? "(" + std::to_string(v + 1) + " - 1)" : std::to_string(v);
}

bool apply(Operation op, Scalar type, const ScalarValue& a, const ScalarValue& b, const ScalarValue& c,
           ScalarValue& result) {
  if (op == Operation::select) {
    result = a.as_boolean() ? b : c;
    return true;
  }
  bool ok = true;
  if (op == Operation::convert) {
    ScalarValue out;
    with_type(a.type, [&](auto from) {
      using From = decltype(from);
      with_type(type, [&](auto to) { put(out, converted<decltype(to)>(get<From>(a))); });
    });
    result = out;
    return true;
  }
  ScalarValue out;
  with_type(a.type, [&](auto t) {
    using T = decltype(t);
    ok = apply_typed(op, get<T>(a), get<T>(b), out);
  });
  result = out;
  return ok;
}

[[gnu::hot]] ScalarValue convert(const ScalarValue& v, Scalar to) {
  if (v.type == to) return v;
  ScalarValue out;
  apply(Operation::convert, to, v, out);
  return out;
}

bool converts_losslessly(Scalar from, Scalar to) {
  if (from == to) return true;
  if (from == Scalar::boolean) return is_integer(to);
  if (is_integer(from)) {
    const auto bits = size_of(from) * 8 - (is_signed_integer(from) ? 1 : 0);
    if (is_signed_integer(to)) return size_of(to) * 8 - 1 >= bits;
    if (is_unsigned_integer(to)) return is_unsigned_integer(from) && size_of(to) >= size_of(from);
    const Scalar part = part_of(to);
    return (part == Scalar::f32 && bits <= 24) || (part == Scalar::f64 && bits <= 53);
  }
  if (is_real(from)) return size_of(part_of(to)) >= size_of(from) && (is_real(to) || is_complex(to));
  return from == Scalar::c64 && to == Scalar::c128;
}

bool keeps_value(const ScalarValue& value, Scalar type) {
  const auto is_exact = [](Scalar s) { return s == Scalar::boolean || is_integer(s); };
  if (is_complex(value.type) && !is_complex(type)) return false;
  const ScalarValue there = convert(value, type), back = convert(there, value.type);
  if (!is_exact(value.type) && !is_exact(type)) return is_finite(there) || !is_finite(value);
  if (is_exact(value.type) && is_exact(type)) return back == value && is_negative(there) == is_negative(value);
  // The largest integer of a type, which all larger reals become, may be rounded to a real that is one more.
  const Scalar exact = is_exact(type) ? type : value.type;
  const double limit = std::ldexp(1.0, static_cast<int>(8 * size_of(exact)) - (is_signed_integer(exact) ? 1 : 0));
  if (is_exact(type)) return value.as_real() < limit && back.as_real() == value.as_real();
  return there.as_real() < limit && back == value;
}

bool fits_type(const ScalarValue& literal, Scalar type) {
  const ScalarValue there = convert(literal, type);
  if (is_complex(literal.type) || is_real(literal.type)) {
    if (!is_complex(type) && !(is_real(type) && is_real(literal.type))) return false;
    return is_finite(there);
  }
  const std::int64_t value = literal.as_integer();
  return convert(there, Scalar::i64).as_integer() == value && (value >= 0 || !is_unsigned_integer(type));
}

}  // namespace kplan
