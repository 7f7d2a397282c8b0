// How it works: as plans/arithmetic.cpp, computed in unsigned arithmetic so that wrapping is defined; written without
// branches, so that the loops become vectors. Divisions are the exception: they stop at a zero divisor that is wanted.
#include <bit>
#include <limits>
#include <type_traits>

#include "jit/precompiled/block_loops.hpp"

namespace kplan::jit {
namespace {

/// At least as wide as unsigned int: narrower types would be promoted to int, and overflow.
template <class T>
using Wider = std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, std::make_unsigned_t<T>>;

template <class T>
T floor_quotient(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(Wider<T>(0) - static_cast<Wider<T>>(a));  // the smallest number wraps
    const auto q = static_cast<T>(a / b), r = static_cast<T>(a % b);
    return (r != 0 && (r < 0) != (b < 0)) ? static_cast<T>(q - 1) : q;
  } else {
    return static_cast<T>(a / b);
  }
}

template <class T>
T floor_remainder(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
    const auto r = static_cast<T>(a % b);
    return (r != 0 && (r < 0) != (b < 0)) ? static_cast<T>(r + b) : r;
  } else {
    return static_cast<T>(a % b);
  }
}

template <class T, class F>
BlockFunction division(F) {
  return [](const BlockOperands& o) {
    auto* __restrict out = reinterpret_cast<T*>(o.out);
    const auto* a = reinterpret_cast<const T*>(o.a);
    const auto* b = reinterpret_cast<const T*>(o.b);
    for (int i = 0; i < o.count; ++i) {
      if (b[i] == 0 && (o.guard == nullptr || o.guard[i] != std::byte{0})) return i;
      out[i] = b[i] == 0 ? T(0) : F{}(a[i], b[i]);
    }
    return o.count;
  };
}

template <class T>
BlockFunction on_integers(Operation op) {
  using U = std::make_unsigned_t<T>;
  using W = Wider<T>;
  static constexpr int width = static_cast<int>(sizeof(T) * 8);
  switch (op) {
    case Operation::neg: return one<T, T>([](T a) { return static_cast<T>(W(0) - static_cast<W>(a)); });
    case Operation::bit_not: return one<T, T>([](T a) { return static_cast<T>(~static_cast<W>(a)); });
    case Operation::add:
      return two<T, T>([](T a, T b) { return static_cast<T>(static_cast<W>(a) + static_cast<W>(b)); });
    case Operation::sub:
      return two<T, T>([](T a, T b) { return static_cast<T>(static_cast<W>(a) - static_cast<W>(b)); });
    case Operation::mul:
      return two<T, T>([](T a, T b) { return static_cast<T>(static_cast<W>(a) * static_cast<W>(b)); });
    case Operation::div: return division<T>([](T a, T b) { return floor_quotient(a, b); });
    case Operation::mod: return division<T>([](T a, T b) { return floor_remainder(a, b); });
    case Operation::ceil_div:
      return division<T>([](T a, T b) {
        const W above = floor_remainder(a, b) != 0 ? 1 : 0;
        return static_cast<T>(static_cast<W>(floor_quotient(a, b)) + above);
      });
    case Operation::bit_and: return two<T, T>([](T a, T b) { return static_cast<T>(a & b); });
    case Operation::bit_or: return two<T, T>([](T a, T b) { return static_cast<T>(a | b); });
    case Operation::bit_xor: return two<T, T>([](T a, T b) { return static_cast<T>(a ^ b); });
    case Operation::shl:
      return two<T, T>([](T a, T b) {
        return static_cast<T>(static_cast<U>(static_cast<W>(a) << static_cast<int>(static_cast<U>(b) & (width - 1))));
      });
    case Operation::shr:
      return two<T, T>([](T a, T b) { return static_cast<T>(a >> static_cast<int>(static_cast<U>(b) & (width - 1))); });
    case Operation::abs: return one<T, T>([](T a) { return a < T(0) ? static_cast<T>(W(0) - static_cast<W>(a)) : a; });
    case Operation::log2:
      return one<T, T>([](T a) {
        return a < T(1) ? static_cast<T>(-1) : static_cast<T>(width - 1 - std::countl_zero(static_cast<U>(a)));
      });
    case Operation::pow2:
      return one<T, T>([](T a) {
        constexpr int largest = std::is_signed_v<T> ? width - 2 : width - 1;
        const bool fits = a >= T(0) && a <= T(largest);
        return fits ? static_cast<T>(W(1) << static_cast<int>(a)) : T(0);
      });
    case Operation::popcount: return one<T, T>([](T a) { return static_cast<T>(std::popcount(static_cast<U>(a))); });
    default: return comparison<T>(op);
  }
}

BlockFunction on_booleans(Operation op) {
  using Byte = std::uint8_t;
  switch (op) {
    case Operation::bit_and: return two<Byte, Byte>([](Byte a, Byte b) { return static_cast<Byte>(a & b); });
    case Operation::bit_or: return two<Byte, Byte>([](Byte a, Byte b) { return static_cast<Byte>(a | b); });
    case Operation::bit_xor: return two<Byte, Byte>([](Byte a, Byte b) { return static_cast<Byte>(a ^ b); });
    case Operation::logical_not: return one<Byte, Byte>([](Byte a) { return static_cast<Byte>(a ^ 1); });
    default: return comparison<Byte>(op);
  }
}

}  // namespace

BlockFunction integer_function(Operation op, Scalar type) {
  switch (type) {
    case Scalar::i8: return on_integers<std::int8_t>(op);
    case Scalar::i16: return on_integers<std::int16_t>(op);
    case Scalar::i32: return on_integers<std::int32_t>(op);
    case Scalar::i64: return on_integers<std::int64_t>(op);
    case Scalar::u8: return on_integers<std::uint8_t>(op);
    case Scalar::u16: return on_integers<std::uint16_t>(op);
    case Scalar::u32: return on_integers<std::uint32_t>(op);
    case Scalar::u64: return on_integers<std::uint64_t>(op);
    default: return on_booleans(op);
  }
}

}  // namespace kplan::jit
