// How it works: as plans/arithmetic.cpp, with the one NaN that it asks for. A complex number's parts are in two planes,
// so that every loop is over plain reals.
#include <cmath>
#include <limits>

#include "jit/precompiled/block_loops.hpp"

namespace kplan::jit {
namespace {

template <class T>
T canonical(T x) {
  return x != x ? std::numeric_limits<T>::quiet_NaN() : x;
}

template <class T>
BlockFunction on_reals(Operation op) {
  switch (op) {
    case Operation::neg: return one<T, T>([](T a) { return -a; });
    case Operation::add: return two<T, T>([](T a, T b) { return canonical(a + b); });
    case Operation::sub: return two<T, T>([](T a, T b) { return canonical(a - b); });
    case Operation::mul: return two<T, T>([](T a, T b) { return canonical(a * b); });
    case Operation::div: return two<T, T>([](T a, T b) { return canonical(a / b); });
    case Operation::abs: return one<T, T>([](T a) { return std::fabs(a); });
    case Operation::sqrt: return one<T, T>([](T a) { return canonical(std::sqrt(a)); });
    default: return comparison<T>(op);
  }
}

/// Both parts of one complex number.
template <class T>
struct Parts {
  T real, imaginary;
};

template <class T, class F>
BlockFunction parts(F) {
  return [](const BlockOperands& o) {
    auto* __restrict real = reinterpret_cast<T*>(o.out);
    auto* __restrict imaginary = real + o.plane;
    const auto *a = reinterpret_cast<const T*>(o.a), *b = reinterpret_cast<const T*>(o.b);
    const T *ai = a + o.plane, *bi = b + o.plane;
    for (int i = 0; i < o.count; ++i) {
      const Parts<T> out = F{}(Parts<T>{a[i], ai[i]}, Parts<T>{b[i], bi[i]});
      real[i] = canonical(out.real);
      imaginary[i] = canonical(out.imaginary);
    }
    return o.count;
  };
}

template <class T, class F>
BlockFunction parts_compared(F) {
  return [](const BlockOperands& o) {
    auto* __restrict out = reinterpret_cast<std::uint8_t*>(o.out);
    const auto *a = reinterpret_cast<const T*>(o.a), *b = reinterpret_cast<const T*>(o.b);
    for (int i = 0; i < o.count; ++i)
      out[i] = static_cast<std::uint8_t>(F{}(a[i] == b[i], a[i + o.plane] == b[i + o.plane]));
    return o.count;
  };
}

template <class T>
BlockFunction on_complex(Operation op) {
  using P = Parts<T>;
  switch (op) {
    case Operation::neg:  // no arithmetic: a NaN stays the one it is
      return [](const BlockOperands& o) {
        auto* __restrict out = reinterpret_cast<T*>(o.out);
        const auto* a = reinterpret_cast<const T*>(o.a);
        for (int i = 0; i < o.count; ++i) out[i] = -a[i];
        for (int i = 0; i < o.count; ++i) out[i + o.plane] = -a[i + o.plane];
        return o.count;
      };
    case Operation::add: return parts<T>([](P a, P b) { return P{a.real + b.real, a.imaginary + b.imaginary}; });
    case Operation::sub: return parts<T>([](P a, P b) { return P{a.real - b.real, a.imaginary - b.imaginary}; });
    case Operation::mul:
      return parts<T>([](P a, P b) {
        return P{a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
      });
    case Operation::div:
      return parts<T>([](P a, P b) {
        const T norm = b.real * b.real + b.imaginary * b.imaginary;
        return P{(a.real * b.real + a.imaginary * b.imaginary) / norm,
                 (a.imaginary * b.real - a.real * b.imaginary) / norm};
      });
    case Operation::eq: return parts_compared<T>([](bool real, bool imaginary) { return real & imaginary; });
    default: return parts_compared<T>([](bool real, bool imaginary) { return !(real & imaginary); });  // ne
  }
}

}  // namespace

BlockFunction real_function(Operation op, Scalar type) {
  return type == Scalar::f32 ? on_reals<float>(op) : on_reals<double>(op);
}

BlockFunction complex_function(Operation op, Scalar type) {
  return type == Scalar::c64 ? on_complex<float>(op) : on_complex<double>(op);
}

}  // namespace kplan::jit
