#pragma once
// Where the elements of one message lie in memory, in the order in which they travel: pieces of nested strided blocks,
// with a list of block positions where no stride describes them. One piece has one nest that all its tracks share.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/analysis/unfilled.hpp"

namespace kplan {

/// One walk along a piece's nest: bytes from a buffer's start, or the values of a where-bound variable. Sums wrap.
struct Track {
  Words bases;                        ///< one for each entry of the piece's list, or the first one's
  std::vector<std::int64_t> strides;  ///< one per dimension of the nest
  std::int64_t step = 0;              ///< from one entry of the list to the next, where there is one base

  bool is_listed() const { return bases.size() > 1; }
  std::int64_t base(std::int64_t entry) const {
    if (is_listed()) return bases[static_cast<std::size_t>(entry)];
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(bases[0]) +
                                     static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(entry));
  }
  /// The bases of `count` entries, one by one.
  Words listed_bases(std::int64_t count) const;
  bool operator==(const Track&) const = default;
};

/// for o in list: for each dimension, outermost first: one element of each track.
struct Piece {
  std::int64_t list_length = 1;
  std::vector<std::int64_t> counts;
  std::vector<Track> tracks;

  std::int64_t block_elements() const;  ///< elements in one block: the product of the counts; at most INT64_MAX
  std::int64_t element_count() const;   ///< in all of them; the same
  bool operator==(const Piece&) const = default;
};

/// Joins dimensions that all tracks walk as one, drops those of one element, turns lists with regular gaps into
/// dimensions, and bases with regular gaps into steps. The order of elements stays. At most `most_piece_dimensions`
/// remain.
inline constexpr std::size_t most_piece_dimensions = 7;
void simplify(Piece& piece);

/// Moves the outermost dimension into the list.
void unfold_dimension(Piece& piece);

/// A list's bases as they come, in no memory as long as they have one gap.
class GrowingTrack {
 public:
  void append(std::span<const std::int64_t> bases);
  /// Without strides.
  Track take() &&;

 private:
  void list();
  Track track_;
  std::int64_t count_ = 0;
};

/// The track of the entries [first, end) of its list.
Track part_of(const Track& track, std::int64_t first, std::int64_t end);

/// The elements [first, end) of the piece, in their order.
std::vector<Piece> part_of(const Piece& piece, std::int64_t first, std::int64_t end);

/// Appends `next` to the pieces, as part of the last one where the blocks have the same shape.
void append(std::vector<Piece>& pieces, Piece next);

/// The same elements in the same order as a few pieces, where the list is of runs of several lengths, as the sides,
/// edges and corners of a box are; otherwise none.
std::vector<Piece> split_into_runs(const Piece& piece);

/// The smallest and the largest position of a track's elements; INT64_MIN and INT64_MAX for sums that wrap.
struct Reach {
  std::int64_t lowest = 0, highest = 0;
};
Reach reach_of(const Piece& piece, const Track& track);

/// Whether no two elements of the track lie at one position, as far as strides show; lists are not looked at.
bool is_surely_injective(const Piece& piece, const Track& track, std::int64_t element_size);

/// Calls f(position) for every step along the list and the first `dimensions` of the nest, in order; stops early when f
/// returns false. Positions wrap.
template <class F>
void walk_outer(const Piece& piece, const Track& track, std::size_t dimensions, const F& f) {
  std::vector<std::int64_t> at(dimensions, 0);
  std::int64_t block = 1;
  for (std::size_t d = 0; d < dimensions; ++d) block *= piece.counts[d];
  for (std::int64_t o = 0; o < piece.list_length; ++o) {
    auto position = static_cast<std::uint64_t>(track.base(o));
    for (std::int64_t k = 0; k < block; ++k) {
      if (!f(static_cast<std::int64_t>(position))) return;
      for (std::size_t d = dimensions; d-- > 0;) {
        const auto stride = static_cast<std::uint64_t>(track.strides[d]);
        position += stride;
        if (++at[d] < piece.counts[d]) break;
        position -= stride * static_cast<std::uint64_t>(piece.counts[d]);
        at[d] = 0;
      }
    }
  }
}

/// The same for every element of the track.
template <class F>
void walk(const Piece& piece, const Track& track, const F& f) {
  walk_outer(piece, track, piece.counts.size(), f);
}

/// The same by runs of elements side by side: f(position, count), where the innermost dimension is one.
template <class F>
void walk_runs(const Piece& piece, const Track& track, std::int64_t element_bytes, const F& f) {
  if (piece.counts.empty() || track.strides.back() != element_bytes)
    return walk(piece, track, [&](std::int64_t position) { return f(position, std::int64_t{1}); });
  const std::int64_t run = piece.counts.back();
  walk_outer(piece, track, piece.counts.size() - 1, [&](std::int64_t position) { return f(position, run); });
}

/// Calls f(positions), one for each track, for every element in order; stops early when f returns false. Positions
/// wrap.
template <class F>
void each_entry(const Piece& piece, const F& f) {
  std::vector<std::int64_t> at(piece.counts.size(), 0), positions(piece.tracks.size());
  const std::int64_t block = piece.block_elements();
  const auto move_on = [&](std::size_t d, std::int64_t steps) {
    for (std::size_t t = 0; t < positions.size(); ++t)
      positions[t] = static_cast<std::int64_t>(static_cast<std::uint64_t>(positions[t]) +
                                               static_cast<std::uint64_t>(piece.tracks[t].strides[d]) *
                                                   static_cast<std::uint64_t>(steps));
  };
  for (std::int64_t o = 0; o < piece.list_length; ++o) {
    for (std::size_t t = 0; t < positions.size(); ++t) positions[t] = piece.tracks[t].base(o);
    for (std::int64_t k = 0; k < block; ++k) {
      if (!f(positions)) return;
      for (std::size_t d = at.size(); d-- > 0;) {
        move_on(d, 1);
        if (++at[d] < piece.counts[d]) break;
        move_on(d, -piece.counts[d]);
        at[d] = 0;
      }
    }
  }
}

}  // namespace kplan
