#pragma once
// Where the elements of a track lie, as far as its strides show, so that two tracks can be told apart without a look at
// their elements: the columns of a matrix that come from one rank and those from another, a face and its ghosts.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/analysis/access_pattern.hpp"

namespace kplan {

class StridedRegion {
 public:
  /// Of elements of so many bytes.
  StridedRegion(const Piece& piece, const Track& track, std::int64_t element_bytes);
  /// That of the whole elements of a buffer, of so many bytes, of which it names a field.
  StridedRegion whole_elements(std::int64_t bytes) const;

  std::int64_t lowest() const { return lowest_; }    ///< the first byte
  std::int64_t highest() const { return highest_; }  ///< behind the last; INT64_MAX where that is no number
  /// Whether they have no byte in common. False where strides do not show it: of lists only how far they reach is
  /// looked at. Cost: as the numbers of dimensions, multiplied.
  bool is_surely_apart_from(const StridedRegion& other) const;

 private:
  bool is_apart_by_some_stride(const StridedRegion& other) const;
  bool is_apart_in_parts(const StridedRegion& other, int& looks) const;
  std::optional<std::size_t> short_dimension() const;
  StridedRegion part(std::size_t dimension, std::int64_t k) const;
  bool is_apart_by(std::int64_t stride, const StridedRegion& other) const;
  std::int64_t bytes_within(std::int64_t stride) const;

  std::int64_t lowest_ = 0, highest_ = 0, element_bytes_;
  bool do_strides_show_all_ = false;  ///< else there is a list, or sums wrap
  /// Distances of the elements, and their numbers.
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions_;
};

/// Whether no two of them have a byte in common, as far as strides show, and pairs that reach into each other are few
/// enough to look at.
bool are_surely_apart(std::vector<StridedRegion> regions);
/// The same of each of the one and each of the other.
bool are_surely_apart(std::span<const StridedRegion> a, std::span<const StridedRegion> b);

}  // namespace kplan
