// How it works: a template over the shape, and a table of the shapes that each workload has at rank 0 of 2.
#include "tools/bench/kernels/constant_loops.hpp"

#include <algorithm>
#include <complex>
#include <stdexcept>
#include <string_view>

namespace kplan::bench {
namespace {

using loops::Walk;

/// Counts of the three outer loops with their strides, then the inner loop; strides in elements. Or a list of
/// `inner_count` indices, each of a block at a multiple of `unit`.
struct Shape {
  std::int64_t counts[3], strides[3], inner_count, inner_stride, block = 0, unit = 0;
};

constexpr Shape run(std::int64_t count, std::int64_t stride = 1) { return {{1, 1, 1}, {0, 0, 0}, count, stride}; }
constexpr Shape rows(std::int64_t count, std::int64_t stride, const Shape& row) {
  return {{1, row.counts[2], count}, {0, row.strides[2], stride}, row.inner_count, row.inner_stride};
}
constexpr Shape planes(std::int64_t count, std::int64_t stride, const Shape& plane) {
  return {{1, count, plane.counts[2]}, {0, stride, plane.strides[2]}, plane.inner_count, plane.inner_stride};
}
constexpr Shape list(std::int64_t count, std::int64_t block = 1, std::int64_t unit = 1) {
  return {{1, 1, 1}, {0, 0, 0}, count, 1, block, unit};
}

/// Calls f(place, value) for all elements of the shape, in order.
template <Shape S, class Place, class Message, class F>
void each(const Walk& w, Place* base, Message* message, F f) {
  if constexpr (S.block > 0) {
    for (std::int64_t n = 0; n < S.inner_count; ++n)
      for (std::int64_t b = 0; b < S.block; ++b) f(base[w.indices[n] * S.unit + b], message[n * S.block + b]);
    return;
  }
  for (std::int64_t i = 0; i < S.counts[0]; ++i)
    for (std::int64_t j = 0; j < S.counts[1]; ++j)
      for (std::int64_t k = 0; k < S.counts[2]; ++k) {
        Place* row = base + i * S.strides[0] + j * S.strides[1] + k * S.strides[2];
        for (std::int64_t n = 0; n < S.inner_count; ++n) f(row[n * S.inner_stride], message[n]);
        message += S.inner_count;
      }
}

template <class T, Shape S>
void pack(const Walk& w, std::byte* message) {
  const T* __restrict base = reinterpret_cast<const T*>(w.base);
  each<S>(w, base, reinterpret_cast<T*>(message), [](const T& place, T& value) { value = place; });
}

template <class Wire, class Place, bool Adds, Shape S>
void unpack(const Walk& w, const std::byte* message) {
  Place* __restrict base = reinterpret_cast<Place*>(w.base);
  each<S>(w, base, reinterpret_cast<const Wire*>(message), [](Place& place, const Wire& value) {
    if constexpr (Adds) place += static_cast<Place>(value);
    else place = static_cast<Place>(value);
  });
}

struct Entry {
  std::string_view workload;
  Scalar wire, place;
  Combine combine;
  Shape shape;
  Loops loops;
};

template <class T, Shape S>
Entry copy(std::string_view workload) {
  return {workload, scalar_of<T>, scalar_of<T>, Combine::assign, S, {pack<T, S>, unpack<T, T, false, S>}};
}
template <class Wire, class Place, Shape S>
Entry conversion(std::string_view workload) {
  return {workload, scalar_of<Wire>, scalar_of<Place>, Combine::assign, S, {nullptr, unpack<Wire, Place, false, S>}};
}
template <class T, Shape S>
Entry sum(std::string_view workload) {
  return {workload, scalar_of<T>, scalar_of<T>, Combine::sum, S, {nullptr, unpack<T, T, true, S>}};
}

using c128 = std::complex<double>;

const Entry entries[] = {
    copy<double, rows(64, 66 * 66, run(64))>("halo 64^3, width 1, faces, split y"),
    copy<double, rows(64, 66 * 66, run(64, 66))>("halo 64^3, width 1, faces, split z"),
    copy<double, planes(64, 68 * 68, rows(64, 68, run(2)))>("halo 64^3, width 2, faces, split z"),
    copy<float, rows(2560, 70, run(3))>("weather, 7 arrays, split x (12 B blocks)"),
    copy<float, rows(64, 70, run(3))>("weather, 7 arrays, split x (12 B blocks)"),
    copy<float, rows(2560, 70, run(3))>("blocks of 12 B, weather field"),
    copy<float, rows(4096, 18 * 6, run(6))>("blocks of 24 B, lattice of SU(3) vectors in f32"),
    copy<double, rows(4096, 66 * 5, run(5))>("blocks of 40 B, LU plane"),
    copy<double, rows(4096, 18 * 6, run(6))>("blocks of 48 B, lattice of SU(3) vectors in f64"),
    copy<float, rows(2560, 18 * 23, run(23))>("blocks of 92 B, columns of a weather field"),
    copy<double, rows(1024, 2048, run(1024))>("block rows to block columns 2048"),
    copy<double, run(1024 * 1024)>("block rows to block columns 2048"),
    copy<double, rows(1024, 2048, run(1024))>("matrix transpose 2048"),
    copy<double, rows(1024, 1, run(1024, 2048))>("matrix transpose 2048"),
    copy<c128, rows(512, 32, run(16))>("FFT transpose, pencils, 32^3 complex"),
    copy<c128, planes(32, 512, rows(16, 1, run(16, 32)))>("FFT transpose, pencils, 32^3 complex"),
    copy<double, list(100)>("ghost gather, 100 entries, shuffled"),
    copy<double, run(100)>("ghost gather, 100 entries, shuffled"),
    copy<double, list(10000)>("ghost gather, 10000 entries, sorted"),
    copy<double, run(10000)>("ghost gather, 10000 entries, sorted"),
    copy<double, list(10000)>("ghost gather, 10000 entries, shuffled"),
    copy<double, run(10000)>("ghost gather, 10000 entries, shuffled"),
    copy<double, list(1000000)>("ghost gather, 1000000 entries, shuffled"),
    copy<double, run(1000000)>("ghost gather, 1000000 entries, shuffled"),
    copy<double, run(10000)>("ghost sum, 10000 entries, shuffled"),
    sum<double, list(10000)>("ghost sum, 10000 entries, shuffled"),
    copy<double, list(1000, 3, 8)>("1000 particles, three fields"),
    copy<double, rows(1000, 8, run(3))>("1000 particles, three fields"),
    copy<double, list(2000, 3, 3)>("finite elements, 2000 nodes of 3"),
    sum<double, list(2000, 3, 3)>("finite elements, 2000 nodes of 3"),
    copy<float, run(100000)>("f32 to f64, 100000 each way"),
    conversion<float, double, run(100000)>("f32 to f64, 100000 each way"),
    copy<float, run(100000, 2)>("f32 to f64, 100000 each way, every second"),
    conversion<float, double, run(100000)>("f32 to f64, 100000 each way, every second"),
    copy<double, run(1024)>("sum of ghost rows on arrival"),
    sum<double, run(1024)>("sum of ghost rows on arrival"),
    copy<double, rows(512, 516, run(2))>("sum of ghost columns on arrival"),
    sum<double, rows(512, 516, run(2))>("sum of ghost columns on arrival"),
};

bool has_shape(const Walk& w, const Entry& e) {
  const auto bytes = static_cast<std::int64_t>(size_of(e.place));
  const Shape& s = e.shape;
  const bool is_list = w.indices != nullptr;
  if (is_list != (s.block > 0) || w.inner_count != s.inner_count) return false;
  if (is_list) return w.block == s.block && w.unit_bytes == s.unit * bytes;
  bool is_same = w.inner_stride == s.inner_stride;
  for (int d = 0; d < 3; ++d)
    is_same = is_same && w.counts[d] == s.counts[d] && (w.counts[d] == 1 || w.strides_bytes[d] == s.strides[d] * bytes);
  return is_same;
}

}  // namespace

ConstantLoops::ConstantLoops(std::string workload) : workload_(std::move(workload)) {
  for (std::size_t k = 0; k < std::size(entries); ++k)
    if (entries[k].workload == workload_) left_.push_back(k);
}

Loops ConstantLoops::find(const Walk& walk, Scalar wire, Scalar place, Combine combine) {
  for (std::size_t k = 0; k < std::size(entries); ++k) {
    const Entry& e = entries[k];
    if (e.workload != workload_ || e.wire != wire || e.place != place || e.combine != combine || !has_shape(walk, e))
      continue;
    std::erase(left_, k);
    return e.loops;
  }
  return {};
}

void ConstantLoops::require_all_found() const {
  if (left_.empty()) return;
  throw std::runtime_error(workload_ + ": constant loops number " + std::to_string(left_[0]) +
                           " have a shape that this workload has not; correct kernels/constant_loops.cpp");
}

}  // namespace kplan::bench
