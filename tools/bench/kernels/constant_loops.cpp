// How it works: a template over the shape, and a table of the shapes that it was made for.
#include "tools/bench/kernels/constant_loops.hpp"

namespace kplan::bench {
namespace {

using loops::Walk;

/// Counts of the three outer loops with their strides, then the inner loop; strides in elements.
struct Shape {
  std::int64_t counts[3], strides[3], inner_count, inner_stride;
};

template <class T, Shape S>
void pack(const Walk& w, std::byte* message) {
  T* __restrict to = reinterpret_cast<T*>(message);
  const T* base = reinterpret_cast<const T*>(w.base);
  for (std::int64_t i = 0; i < S.counts[0]; ++i)
    for (std::int64_t j = 0; j < S.counts[1]; ++j)
      for (std::int64_t k = 0; k < S.counts[2]; ++k) {
        const T* from = base + i * S.strides[0] + j * S.strides[1] + k * S.strides[2];
        for (std::int64_t n = 0; n < S.inner_count; ++n) to[n] = from[n * S.inner_stride];
        to += S.inner_count;
      }
}

template <class T, Shape S>
void unpack(const Walk& w, const std::byte* message) {
  const T* from = reinterpret_cast<const T*>(message);
  T* __restrict base = reinterpret_cast<T*>(w.base);
  for (std::int64_t i = 0; i < S.counts[0]; ++i)
    for (std::int64_t j = 0; j < S.counts[1]; ++j)
      for (std::int64_t k = 0; k < S.counts[2]; ++k) {
        T* to = base + i * S.strides[0] + j * S.strides[1] + k * S.strides[2];
        for (std::int64_t n = 0; n < S.inner_count; ++n) to[n * S.inner_stride] = from[n];
        from += S.inner_count;
      }
}

struct Entry {
  std::size_t element_bytes;
  Shape shape;
  ConstantLoops loops;
};

template <class T, Shape S>
Entry entry() {
  return {sizeof(T), S, {pack<T, S>, unpack<T, S>}};
}

const Entry entries[] = {
    entry<double, Shape{{1, 1, 64}, {0, 0, 64 * 66}, 64, 1}>(),  // halo 64^3, width 1, split y
    entry<double, Shape{{1, 1, 64}, {0, 0, 66 * 66}, 64, 1}>(),
    entry<double, Shape{{1, 1, 64}, {0, 0, 66 * 66}, 64, 66}>(),  // split z
    entry<double, Shape{{1, 64, 64}, {0, 68 * 68, 68}, 2, 1}>(),  // width 2, split z
    entry<float, Shape{{1, 1, 2560}, {0, 0, 70}, 3, 1}>(),        // blocks of 12 B
    entry<float, Shape{{1, 1, 4096}, {0, 0, 18 * 6}, 6, 1}>(),    // blocks of 24 B
    entry<double, Shape{{1, 1, 4096}, {0, 0, 66 * 5}, 5, 1}>(),   // blocks of 40 B
    entry<double, Shape{{1, 1, 4096}, {0, 0, 18 * 6}, 6, 1}>(),   // blocks of 48 B
    entry<float, Shape{{1, 1, 2560}, {0, 0, 18 * 23}, 23, 1}>(),  // blocks of 92 B
    entry<double, Shape{{1, 1, 1024}, {0, 0, 2048}, 1024, 1}>(),  // block rows to block columns
    entry<double, Shape{{1, 1, 1024}, {0, 0, 1}, 1024, 2048}>(),  // transpose
};

bool has_shape(const Walk& w, const Entry& e) {
  const auto bytes = static_cast<std::int64_t>(e.element_bytes);
  bool is_same = w.indices == nullptr && w.inner_count == e.shape.inner_count && w.inner_stride == e.shape.inner_stride;
  for (int d = 0; d < 3; ++d)
    is_same = is_same && w.counts[d] == e.shape.counts[d] &&
              (w.counts[d] == 1 || w.strides_bytes[d] == e.shape.strides[d] * bytes);
  return is_same;
}

}  // namespace

ConstantLoops constant_loops(const Walk& walk, std::size_t element_bytes) {
  for (const Entry& e : entries)
    if (e.element_bytes == element_bytes && has_shape(walk, e)) return e.loops;
  return {};
}

}  // namespace kplan::bench
