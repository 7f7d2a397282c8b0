#include "engine/lower/loop_order.hpp"

#include <algorithm>
#include <span>

namespace kplan {
namespace {

constexpr std::int64_t line_bytes = 64, most_steps = 4;

/// Whether some step of dimension d lies on a line with another one, in the same row or in neighbouring ones. Rows:
/// the dimensions behind d up to `row`.
bool has_shared_lines(const Piece& piece, std::span<const Track> tracks, std::size_t d, std::size_t row) {
  const auto is_near = [](std::int64_t distance) { return std::abs(distance) < line_bytes; };
  for (std::int64_t i = 0; i < piece.counts[d]; ++i)
    for (std::int64_t j = 0; j < piece.counts[d]; ++j) {
      if (i == j) continue;
      for (const Track& a : tracks)
        for (const Track& b : tracks) {
          const std::int64_t apart = a.bases[0] + i * a.strides[d] - b.bases[0] - j * b.strides[d];
          if (is_near(apart)) return true;
          for (std::size_t r = d + 1; r <= row; ++r)
            if (is_near(apart + b.strides[r])) return true;
        }
    }
  return false;
}

/// Walks the dimension from its last step to its first. The piece has no list.
void turn_round(Piece& piece, std::size_t d) {
  for (Track& t : piece.tracks) {
    t.bases[0] += (piece.counts[d] - 1) * t.strides[d];
    t.strides[d] = -t.strides[d];
  }
}

}  // namespace

bool walk_shared_lines_together(Piece& piece, std::size_t tracks, std::int64_t element_bytes, bool is_written) {
  if (piece.list_length > 1 || piece.counts.size() < 3) return false;
  const std::span<const Track> looked_at = std::span(piece.tracks).first(tracks);
  // The innermost loops that go from line to line.
  std::size_t row = piece.counts.size();
  std::int64_t elements = 1, span = element_bytes;
  while (row > 0 && span < line_bytes) {
    --row;
    elements *= piece.counts[row];
    std::int64_t longest = 0;
    for (const Track& t : looked_at) longest = std::max(longest, std::abs(t.strides[row]));
    span += (piece.counts[row] - 1) * longest;
  }
  if (row < 2 || span < 4 * elements * element_bytes) return false;
  const std::size_t end = is_written ? row + 1 : row;
  for (std::size_t d = 0; d + 1 < end; ++d) {
    if (piece.counts[d] > most_steps || !has_shared_lines(piece, looked_at, d, row)) continue;
    const std::vector<std::int64_t>& strides = looked_at.back().strides;
    if (is_written && (strides[d] < 0) != (strides[row] < 0)) turn_round(piece, d);
    const auto move = [&](std::vector<std::int64_t>& of) {
      const auto begin = of.begin() + static_cast<std::ptrdiff_t>(d);
      std::rotate(begin, begin + 1, of.begin() + static_cast<std::ptrdiff_t>(end));
    };
    move(piece.counts);
    for (Track& t : piece.tracks) move(t.strides);
    return true;
  }
  return false;
}

}  // namespace kplan
