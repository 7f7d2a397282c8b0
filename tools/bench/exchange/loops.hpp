#pragma once
// The loops that people write by hand to pack and unpack: over rows, strided elements, tiles and index lists. What a
// programmer would know when writing them (element type, length of short rows) is constant here too.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tools/bench/exchange/region.hpp"

namespace kplan::bench::loops {

/// What a loop walks: up to three outer loops, and what is innermost.
struct Walk {
  std::byte* base = nullptr;
  std::int64_t counts[3] = {1, 1, 1}, strides_bytes[3] = {0, 0, 0};
  std::int64_t inner_count = 1, inner_stride = 1;  ///< elements
  const std::int32_t* indices = nullptr;           ///< with inner_count of them
  std::int64_t unit_bytes = 0, block = 1;          ///< of an index
  std::int64_t message_bytes = 0;
};

struct Complex {
  double real, imaginary;
};

/// Calls f with the count as a constant where rows or blocks of that length are common, else with 0.
template <class F>
auto with_constant(std::int64_t count, F f) {
  switch (count) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 3: return f(std::integral_constant<int, 3>());
    case 4: return f(std::integral_constant<int, 4>());
    case 5: return f(std::integral_constant<int, 5>());
    case 6: return f(std::integral_constant<int, 6>());
    case 8: return f(std::integral_constant<int, 8>());
    case 16: return f(std::integral_constant<int, 16>());
    case 32: return f(std::integral_constant<int, 32>());
    default: return f(std::integral_constant<int, 0>());
  }
}

/// Calls f(row) for each run of the outer loops.
template <class F>
inline void each_row(const Walk& w, F f) {
  for (std::int64_t i = 0; i < w.counts[0]; ++i)
    for (std::int64_t j = 0; j < w.counts[1]; ++j) {
      std::byte* row = w.base + i * w.strides_bytes[0] + j * w.strides_bytes[1];
      for (std::int64_t k = 0; k < w.counts[2]; ++k, row += w.strides_bytes[2]) f(row);
    }
}

/// Rows of a constant number of bytes, or of any (0).
template <std::size_t Bytes, class T>
void pack_rows(const Walk& w, std::byte* message) {
  const std::size_t bytes = Bytes > 0 ? Bytes : static_cast<std::size_t>(w.inner_count) * sizeof(T);
  each_row(w, [&](const std::byte* row) {
    std::memcpy(message, row, Bytes > 0 ? Bytes : bytes);
    message += bytes;
  });
}
template <std::size_t Bytes, class T>
void unpack_rows(const Walk& w, const std::byte* message) {
  const std::size_t bytes = Bytes > 0 ? Bytes : static_cast<std::size_t>(w.inner_count) * sizeof(T);
  each_row(w, [&](std::byte* row) {
    std::memcpy(row, message, Bytes > 0 ? Bytes : bytes);
    message += bytes;
  });
}

template <class T>
void pack_elements(const Walk& w, std::byte* message) {
  T* __restrict to = reinterpret_cast<T*>(message);
  each_row(w, [&](const std::byte* row) {
    const T* from = reinterpret_cast<const T*>(row);
    if (w.inner_stride == 1) {
      for (std::int64_t k = 0; k < w.inner_count; ++k) to[k] = from[k];
    } else {
      for (std::int64_t k = 0; k < w.inner_count; ++k) to[k] = from[k * w.inner_stride];
    }
    to += w.inner_count;
  });
}

/// Stores or adds what has come, converted where the types differ; rows may be strided. Of a constant number of
/// elements, or of any (0).
template <class Wire, class Place, bool Adds, int Count>
void unpack_elements(const Walk& w, const std::byte* message) {
  const Wire* from = reinterpret_cast<const Wire*>(message);
  const auto update = [](Place& place, const Wire& value) {
    if constexpr (Adds) place += static_cast<Place>(value);
    else if constexpr (std::is_same_v<Wire, Place>) place = value;
    else place = static_cast<Place>(value);
  };
  const std::int64_t count = Count > 0 ? Count : w.inner_count;
  each_row(w, [&](std::byte* row) {
    Place* __restrict to = reinterpret_cast<Place*>(row);
    if (w.inner_stride == 1) {
      for (std::int64_t k = 0; k < (Count > 0 ? Count : count); ++k) update(to[k], from[k]);
    } else {
      for (std::int64_t k = 0; k < (Count > 0 ? Count : count); ++k) update(to[k * w.inner_stride], from[k]);
    }
    from += count;
  });
}

/// The last outer loop has stride 1 and the inner one has not: a transposition, by tiles that fit into the first cache.
constexpr std::int64_t tile = 16;

template <class T>
void unpack_transposed(const Walk& w, const std::byte* message) {
  const T* from = reinterpret_cast<const T*>(message);
  Walk outer = w;
  outer.counts[2] = 1;
  each_row(outer, [&](std::byte* row) {
    T* __restrict to = reinterpret_cast<T*>(row);
    const std::int64_t columns = w.counts[2], rows = w.inner_count;
    for (std::int64_t c = 0; c < columns; c += tile)
      for (std::int64_t r = 0; r < rows; r += tile)
        for (std::int64_t rr = r; rr < std::min(r + tile, rows); ++rr)
          for (std::int64_t cc = c; cc < std::min(c + tile, columns); ++cc)
            to[rr * w.inner_stride + cc] = from[cc * rows + rr];
    from += columns * rows;
  });
}

template <class T>
void pack_transposed(const Walk& w, std::byte* message) {
  T* to = reinterpret_cast<T*>(message);
  Walk outer = w;
  outer.counts[2] = 1;
  each_row(outer, [&](std::byte* row) {
    const T* from = reinterpret_cast<const T*>(row);
    const std::int64_t columns = w.counts[2], rows = w.inner_count;
    for (std::int64_t r = 0; r < rows; r += tile)
      for (std::int64_t c = 0; c < columns; c += tile)
        for (std::int64_t cc = c; cc < std::min(c + tile, columns); ++cc)
          for (std::int64_t rr = r; rr < std::min(r + tile, rows); ++rr)
            to[cc * rows + rr] = from[rr * w.inner_stride + cc];
    to += columns * rows;
  });
}

/// Blocks of a constant number of elements, or of any (0).
template <class T, int Block>
void pack_indexed(const Walk& w, std::byte* message) {
  T* __restrict to = reinterpret_cast<T*>(message);
  const std::int64_t block = Block > 0 ? Block : w.block, unit = w.unit_bytes / static_cast<std::int64_t>(sizeof(T));
  const T* base = reinterpret_cast<const T*>(w.base);
  for (std::int64_t k = 0; k < w.inner_count; ++k)
    for (std::int64_t b = 0; b < (Block > 0 ? Block : block); ++b) to[k * block + b] = base[w.indices[k] * unit + b];
}
template <class Wire, class Place, bool Adds, int Block>
void unpack_indexed(const Walk& w, const std::byte* message) {
  const Wire* from = reinterpret_cast<const Wire*>(message);
  const std::int64_t block = Block > 0 ? Block : w.block;
  const std::int64_t unit = w.unit_bytes / static_cast<std::int64_t>(sizeof(Place));
  Place* __restrict base = reinterpret_cast<Place*>(w.base);
  for (std::int64_t k = 0; k < w.inner_count; ++k)
    for (std::int64_t b = 0; b < (Block > 0 ? Block : block); ++b) {
      Place& place = base[w.indices[k] * unit + b];
      if constexpr (Adds) place += static_cast<Place>(from[k * block + b]);
      else if constexpr (std::is_same_v<Wire, Place>) place = from[k * block + b];
      else place = static_cast<Place>(from[k * block + b]);
    }
}

/// Long blocks of any length.
template <class T>
void pack_blocks(const Walk& w, std::byte* message) {
  const std::size_t bytes = static_cast<std::size_t>(w.block) * sizeof(T);
  for (std::int64_t k = 0; k < w.inner_count; ++k, message += bytes)
    std::memcpy(message, w.base + w.indices[k] * w.unit_bytes, bytes);
}
template <class T>
void unpack_blocks(const Walk& w, const std::byte* message) {
  const std::size_t bytes = static_cast<std::size_t>(w.block) * sizeof(T);
  for (std::int64_t k = 0; k < w.inner_count; ++k, message += bytes)
    std::memcpy(w.base + w.indices[k] * w.unit_bytes, message, bytes);
}

}  // namespace kplan::bench::loops
