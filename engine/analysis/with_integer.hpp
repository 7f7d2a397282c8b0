#pragma once

#include <cstdint>

#include "kplan/types.hpp"

namespace kplan {

/// Calls f.operator()<T>() with the C++ type of an integer; of an u64 it is that of an i64.
template <class F>
[[gnu::always_inline]] inline void with_integer(Scalar type, const F& f) {
  switch (type) {
    case Scalar::i8: return f.template operator()<std::int8_t>();
    case Scalar::i16: return f.template operator()<std::int16_t>();
    case Scalar::i32: return f.template operator()<std::int32_t>();
    case Scalar::u8: return f.template operator()<std::uint8_t>();
    case Scalar::u16: return f.template operator()<std::uint16_t>();
    case Scalar::u32: return f.template operator()<std::uint32_t>();
    default: return f.template operator()<std::int64_t>();
  }
}

}  // namespace kplan
