// How it works: C++'s conversions, between all types that are not complex. Reals to integers of up to 32 bits saturate
// in double, which holds their bounds and what lies between exactly, so that the loops become vectors.
#include <cmath>
#include <limits>
#include <type_traits>

#include "jit/precompiled/block_loops.hpp"

namespace kplan::jit {
namespace {

/// A boolean in a block: a byte, 0 or 1.
enum class Boolean : std::uint8_t {};

template <class To, class From>
To saturated(From x) {
  using Limits = std::numeric_limits<To>;
  if constexpr (sizeof(To) < 8) {
    constexpr double low = static_cast<double>(Limits::min()), high = static_cast<double>(Limits::max());
    double y = static_cast<double>(x);
    y = y != y ? 0 : y;
    y = y < low ? low : y;
    y = y > high ? high : y;
    using Through = std::conditional_t<std::is_same_v<To, std::uint32_t>, std::int64_t, std::int32_t>;
    return static_cast<To>(static_cast<Through>(y));
  } else {
    if (x != x) return 0;
    // The largest To rounds up to a power of two in From, hence >=.
    if (x >= static_cast<From>(Limits::max())) return Limits::max();
    if (x <= static_cast<From>(Limits::min())) return Limits::min();
    return static_cast<To>(x);
  }
}

template <class To, class From>
To converted(From x) {
  if constexpr (std::is_same_v<From, Boolean>) {
    return static_cast<To>(static_cast<std::uint8_t>(x));
  } else if constexpr (std::is_same_v<To, Boolean>) {
    return static_cast<Boolean>(x != From(0));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return saturated<To>(x);
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
    return x != x ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
BlockFunction conversion() {
  return one<To, From>([](From x) { return converted<To>(x); });
}

template <class From>
BlockFunction conversion_from(Scalar to) {
  switch (to) {
    case Scalar::boolean: return conversion<From, Boolean>();
    case Scalar::i8: return conversion<From, std::int8_t>();
    case Scalar::i16: return conversion<From, std::int16_t>();
    case Scalar::i32: return conversion<From, std::int32_t>();
    case Scalar::i64: return conversion<From, std::int64_t>();
    case Scalar::u8: return conversion<From, std::uint8_t>();
    case Scalar::u16: return conversion<From, std::uint16_t>();
    case Scalar::u32: return conversion<From, std::uint32_t>();
    case Scalar::u64: return conversion<From, std::uint64_t>();
    case Scalar::f32: return conversion<From, float>();
    default: return conversion<From, double>();
  }
}

template <class T>
BlockFunction complex_to_boolean() {
  return [](const BlockOperands& o) {
    auto* __restrict out = reinterpret_cast<std::uint8_t*>(o.out);
    const auto* a = reinterpret_cast<const T*>(o.a);
    for (int i = 0; i < o.count; ++i) out[i] = static_cast<std::uint8_t>((a[i] != 0) | (a[i + o.plane] != 0));
    return o.count;
  };
}

}  // namespace

BlockFunction conversion_function(Scalar from, Scalar to) {
  switch (from) {
    case Scalar::boolean: return conversion_from<Boolean>(to);
    case Scalar::i8: return conversion_from<std::int8_t>(to);
    case Scalar::i16: return conversion_from<std::int16_t>(to);
    case Scalar::i32: return conversion_from<std::int32_t>(to);
    case Scalar::i64: return conversion_from<std::int64_t>(to);
    case Scalar::u8: return conversion_from<std::uint8_t>(to);
    case Scalar::u16: return conversion_from<std::uint16_t>(to);
    case Scalar::u32: return conversion_from<std::uint32_t>(to);
    case Scalar::u64: return conversion_from<std::uint64_t>(to);
    case Scalar::f32: return conversion_from<float>(to);
    case Scalar::f64: return conversion_from<double>(to);
    case Scalar::c64: return complex_to_boolean<float>();
    default: return complex_to_boolean<double>();
  }
}

}  // namespace kplan::jit
