// How it works: what is a mere copy between nests of one shape goes from row to row, by tiles where one side is
// transposed; all else is packed and unpacked.
#include "tools/bench/exchange/packer.hpp"

namespace kplan::bench {
namespace {

using loops::Walk;

/// Both loops of a transposition in tiles; the others outside.
template <class T>
void move_tile(T* to, const T* from, const Walk& a, const Walk& b, std::int64_t first, std::int64_t begin) {
  const std::int64_t size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t to_step = a.strides_bytes[2] / size, from_step = b.strides_bytes[2] / size;
  for (std::int64_t k = first; k < std::min(first + loops::tile, a.counts[2]); ++k)
    for (std::int64_t n = begin; n < std::min(begin + loops::tile, a.inner_count); ++n)
      to[k * to_step + n * a.inner_stride] = from[k * from_step + n * b.inner_stride];
}

template <class T, int Count>
void move_row(T* to, const T* from, const Walk& a, const Walk& b) {
  constexpr std::int64_t short_row = 16;
  if (a.inner_stride != 1 || b.inner_stride != 1) {
    for (std::int64_t n = 0; n < (Count > 0 ? Count : a.inner_count); ++n)
      to[n * a.inner_stride] = from[n * b.inner_stride];
  } else if (Count > 0 || a.inner_count < short_row) {
    for (std::int64_t n = 0; n < (Count > 0 ? Count : a.inner_count); ++n) to[n] = from[n];
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(a.inner_count) * sizeof(T));
  }
}

template <class T, int Count>
void move_rows(const Walk& a, const Walk& b) {
  const bool is_transposed = a.inner_stride != b.inner_stride && a.counts[2] >= loops::tile;
  for (std::int64_t i = 0; i < a.counts[0]; ++i)
    for (std::int64_t j = 0; j < a.counts[1]; ++j) {
      std::byte* to = a.base + i * a.strides_bytes[0] + j * a.strides_bytes[1];
      const std::byte* from = b.base + i * b.strides_bytes[0] + j * b.strides_bytes[1];
      if (is_transposed) {
        for (std::int64_t k = 0; k < a.counts[2]; k += loops::tile)
          for (std::int64_t n = 0; n < a.inner_count; n += loops::tile)
            move_tile(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), a, b, k, n);
        continue;
      }
      for (std::int64_t k = 0; k < a.counts[2]; ++k, to += a.strides_bytes[2], from += b.strides_bytes[2])
        move_row<T, Count>(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), a, b);
    }
}

using Move = void (*)(const Walk& to, const Walk& from);

template <class T>
Move moving(std::int64_t row) {
  return loops::with_constant(
      row, []<int Count>(std::integral_constant<int, Count>) -> Move { return move_rows<T, Count>; });
}

Move moving(std::int64_t row, std::size_t element_bytes) {
  switch (element_bytes) {
    case 1: return moving<std::uint8_t>(row);
    case 4: return moving<float>(row);
    case 8: return moving<double>(row);
    default: return moving<loops::Complex>(row);
  }
}

}  // namespace

Mover::Mover(const Link& local, const Exchange& exchange) {
  if (!exchange.reads_what_it_writes && add_rows(local, exchange)) return;
  rows_.clear();
  staged_.emplace_back(local.theirs, exchange.arrays, exchange.wire_type(), Combine::assign);
  staged_.emplace_back(local.mine, exchange.arrays, exchange.wire_type(), exchange.combine);
  stage_.resize(staged_[0].message_bytes());
}

/// Rows to rows, piece by piece; false where shapes differ, elements are strided, or something is not a mere copy.
bool Mover::add_rows(const Link& local, const Exchange& exchange) {
  if (!exchange.stores_as_sent() || local.mine.size() != local.theirs.size()) return false;
  for (std::size_t k = 0; k < local.mine.size(); ++k) {
    if (!std::holds_alternative<Nest>(local.mine[k]) || !std::holds_alternative<Nest>(local.theirs[k])) return false;
    Nest to = std::get<Nest>(local.mine[k]), from = std::get<Nest>(local.theirs[k]);
    if (!simplify_together(to, from)) return false;
    const Array& to_array = exchange.arrays[static_cast<std::size_t>(to.array)];
    const Walk a = walk_of(to, to_array), b = walk_of(from, exchange.arrays[static_cast<std::size_t>(from.array)]);
    rows_.push_back({a, b, moving(a.inner_count, size_of(to_array.type))});
  }
  return true;
}

void Mover::move() {
  for (const Rows& r : rows_) r.move(r.to, r.from);
  if (staged_.empty()) return;
  staged_[0].pack(stage_.data());
  staged_[1].unpack(stage_.data());
}

}  // namespace kplan::bench
