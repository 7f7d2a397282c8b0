#pragma once
// The loops that all block functions are: what is done to one element is given as a lambda without captures.

#include "jit/precompiled/block_operations.hpp"

namespace kplan::jit {

/// out[i] = f(a[i])
template <class Result, class Operand, class F>
BlockFunction one(F) {
  return [](const BlockOperands& o) {
    auto* __restrict out = reinterpret_cast<Result*>(o.out);
    const auto* a = reinterpret_cast<const Operand*>(o.a);
    for (int i = 0; i < o.count; ++i) out[i] = F{}(a[i]);
    return o.count;
  };
}

/// out[i] = f(a[i], b[i])
template <class Result, class Operand, class F>
BlockFunction two(F) {
  return [](const BlockOperands& o) {
    auto* __restrict out = reinterpret_cast<Result*>(o.out);
    const auto* a = reinterpret_cast<const Operand*>(o.a);
    const auto* b = reinterpret_cast<const Operand*>(o.b);
    for (int i = 0; i < o.count; ++i) out[i] = F{}(a[i], b[i]);
    return o.count;
  };
}

/// Comparisons and the two operations made of one, the same for all ordered types; null for other operations.
template <class T>
BlockFunction comparison(Operation op) {
  using Byte = std::uint8_t;
  switch (op) {
    case Operation::eq: return two<Byte, T>([](T a, T b) { return static_cast<Byte>(a == b); });
    case Operation::ne: return two<Byte, T>([](T a, T b) { return static_cast<Byte>(a != b); });
    case Operation::lt: return two<Byte, T>([](T a, T b) { return static_cast<Byte>(a < b); });
    case Operation::le: return two<Byte, T>([](T a, T b) { return static_cast<Byte>(a <= b); });
    case Operation::gt: return two<Byte, T>([](T a, T b) { return static_cast<Byte>(a > b); });
    case Operation::ge: return two<Byte, T>([](T a, T b) { return static_cast<Byte>(a >= b); });
    case Operation::min: return two<T, T>([](T a, T b) { return b < a ? b : a; });
    case Operation::max: return two<T, T>([](T a, T b) { return a < b ? b : a; });
    default: return nullptr;
  }
}

}  // namespace kplan::jit
