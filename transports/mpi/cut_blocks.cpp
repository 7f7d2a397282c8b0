// How it works: of what a loop repeats, there are those that lie within the limits as a whole, which are a shorter
// loop, and one at either limit perhaps, which is cut in turn.
#include "transports/mpi/cut_blocks.hpp"

#include <algorithm>

namespace kplan::transport::mpi_backend {
namespace {

/// What the loops of `nest` from number `depth` on repeat.
Blocks inner(const Blocks& nest, std::size_t depth, std::int64_t offset) {
  const auto d = static_cast<std::ptrdiff_t>(depth);
  return {nest.base,
          {offset},
          {nest.counts.begin() + d, nest.counts.end()},
          {nest.strides_bytes.begin() + d, nest.strides_bytes.end()},
          nest.block_bytes};
}

std::int64_t bytes_of(const Blocks& nest, std::size_t depth) {
  std::int64_t out = nest.block_bytes;
  for (std::size_t d = depth; d < nest.counts.size(); ++d) out *= nest.counts[d];
  return out;
}

/// Calls cut_one(k, first, last) for the repetitions of so many bytes that are cut, and take_whole(k, end) for the
/// others.
template <class CutOne, class TakeWhole>
void cut_repeated(std::int64_t bytes, std::int64_t first, std::int64_t last, const CutOne& cut_one,
                  const TakeWhole& take_whole) {
  std::int64_t k = first / bytes;
  const std::int64_t end = last / bytes;
  if (k == end) return cut_one(k, first % bytes, last % bytes);
  if (first % bytes > 0) cut_one(k++, first % bytes, bytes);
  if (k < end) take_whole(k, end);
  if (last % bytes > 0) cut_one(end, std::int64_t{0}, last % bytes);
}

/// The same of the loops of `nest` from number `depth` on, at an offset from its base.
void cut_nest(const Blocks& nest, std::size_t depth, std::int64_t offset, std::int64_t first, std::int64_t last,
              std::vector<Blocks>& out) {
  if (depth == nest.counts.size()) {
    out.push_back({nest.base, {offset + first}, {}, {}, last - first});
    return;
  }
  const std::int64_t stride = nest.strides_bytes[depth];
  cut_repeated(
      bytes_of(nest, depth + 1), first, last,
      [&](std::int64_t k, std::int64_t from, std::int64_t to) {
        cut_nest(nest, depth + 1, offset + k * stride, from, to, out);
      },
      [&](std::int64_t k, std::int64_t end) {
        out.push_back(inner(nest, depth, offset + k * stride));
        out.back().counts[0] = end - k;
      });
}

}  // namespace

std::vector<Blocks> cut(std::span<const Blocks> blocks, std::size_t first, std::size_t last) {
  std::vector<Blocks> out;
  auto from = static_cast<std::int64_t>(first), to = static_cast<std::int64_t>(last);
  for (const Blocks& b : blocks) {
    const std::int64_t nest_bytes = bytes_of(b, 0);
    const std::int64_t bytes = nest_bytes * static_cast<std::int64_t>(b.offsets_bytes.size());
    if (from < bytes && to > 0)
      cut_repeated(
          nest_bytes, std::max<std::int64_t>(from, 0), std::min(to, bytes),
          [&](std::int64_t k, std::int64_t begin, std::int64_t end) {
            cut_nest(b, 0, b.offsets_bytes[static_cast<std::size_t>(k)], begin, end, out);
          },
          [&](std::int64_t k, std::int64_t end) {
            out.push_back(inner(b, 0, 0));
            out.back().offsets_bytes.assign(b.offsets_bytes.begin() + k, b.offsets_bytes.begin() + end);
          });
    from -= bytes;
    to -= bytes;
  }
  return out;
}

}  // namespace kplan::transport::mpi_backend
