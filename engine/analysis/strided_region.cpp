// How it works: a stride of either region cuts memory into lines of its length. Dimensions whose strides are multiples
// of it change the line alone; where what the others reach over lies in different parts of the lines, no line matters.
#include "engine/analysis/strided_region.hpp"

#include <algorithm>
#include <cstdlib>

namespace kplan {
namespace {

constexpr std::size_t most_pairs = 4096;
constexpr std::int64_t most_parts = 4;  ///< of a dimension that is short
constexpr int most_looks = 64;          ///< at the parts of two regions

std::int64_t remainder(std::int64_t position, std::int64_t of) {
  const std::int64_t r = position % of;
  return r < 0 ? r + of : r;
}

}  // namespace

StridedRegion::StridedRegion(const Piece& piece, const Track& track, std::int64_t element_bytes)
    : element_bytes_(element_bytes) {
  const Reach reach = reach_of(piece, track);
  lowest_ = reach.lowest;
  if (__builtin_add_overflow(reach.highest, element_bytes, &highest_)) highest_ = INT64_MAX;
  std::int64_t reached = 0;
  do_strides_show_all_ = !track.is_listed() && lowest_ > INT64_MIN && highest_ < INT64_MAX &&
                         !__builtin_sub_overflow(highest_, lowest_, &reached);
  if (!do_strides_show_all_) return;
  const auto add = [this](std::int64_t stride, std::int64_t count) {
    if (count > 1 && stride != 0) dimensions_.emplace_back(std::abs(stride), count);
  };
  add(track.step, piece.list_length);
  for (std::size_t d = 0; d < piece.counts.size(); ++d) add(track.strides[d], piece.counts[d]);
}

StridedRegion StridedRegion::whole_elements(std::int64_t bytes) const {
  StridedRegion out = *this;
  out.element_bytes_ = bytes;
  if (lowest_ == INT64_MIN || highest_ == INT64_MAX) return out;  // it reaches everywhere
  out.lowest_ -= remainder(lowest_, bytes);
  out.highest_ += (bytes - remainder(highest_, bytes)) % bytes;
  return out;
}

bool StridedRegion::is_surely_apart_from(const StridedRegion& other) const {
  int looks = most_looks;
  return is_apart_in_parts(other, looks);
}

/// As a whole, or each of the few parts along a short dimension, as the two ghosts of a row.
bool StridedRegion::is_apart_in_parts(const StridedRegion& other, int& looks) const {
  if (highest_ <= other.lowest_ || other.highest_ <= lowest_) return true;
  if (!do_strides_show_all_ || !other.do_strides_show_all_ || --looks < 0) return false;
  if (is_apart_by_some_stride(other)) return true;
  const std::optional<std::size_t> dimension = short_dimension();
  if (!dimension) return other.short_dimension() && other.is_apart_in_parts(*this, looks);
  for (std::int64_t k = 0; k < dimensions_[*dimension].second; ++k)
    if (!part(*dimension, k).is_apart_in_parts(other, looks)) return false;
  return true;
}

std::optional<std::size_t> StridedRegion::short_dimension() const {
  for (std::size_t d = 0; d < dimensions_.size(); ++d)
    if (dimensions_[d].second <= most_parts) return d;
  return std::nullopt;
}

/// What has the number k along a dimension.
StridedRegion StridedRegion::part(std::size_t dimension, std::int64_t k) const {
  StridedRegion out = *this;
  const auto [distance, count] = dimensions_[dimension];
  out.lowest_ += k * distance;
  out.highest_ -= (count - 1 - k) * distance;
  out.dimensions_.erase(out.dimensions_.begin() + static_cast<std::ptrdiff_t>(dimension));
  return out;
}

bool StridedRegion::is_apart_by_some_stride(const StridedRegion& other) const {
  const auto is_apart_by_one_of = [&](const StridedRegion& r) {
    return std::ranges::any_of(r.dimensions_, [&](const auto& d) { return is_apart_by(d.first, other); });
  };
  return is_apart_by_one_of(*this) || is_apart_by_one_of(other);
}

bool StridedRegion::is_apart_by(std::int64_t stride, const StridedRegion& other) const {
  const std::int64_t bytes = bytes_within(stride), other_bytes = other.bytes_within(stride);
  if (bytes > stride || other_bytes > stride) return false;
  const std::int64_t distance = remainder(other.lowest_, stride) - remainder(lowest_, stride);
  const std::int64_t between = distance < 0 ? distance + stride : distance;
  return bytes <= between && other_bytes <= stride - between;
}

/// From the first to the last byte where dimensions of that stride, and of its multiples, are left out.
std::int64_t StridedRegion::bytes_within(std::int64_t stride) const {
  std::int64_t bytes = element_bytes_;
  for (const auto& [distance, count] : dimensions_)
    if (distance % stride != 0) bytes += distance * (count - 1);
  return bytes;
}

bool are_surely_apart(std::vector<StridedRegion> regions) {
  std::ranges::sort(regions, {}, &StridedRegion::lowest);
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < regions.size(); ++a)
    for (std::size_t b = a + 1; b < regions.size() && regions[b].lowest() < regions[a].highest(); ++b)
      if (++pairs > most_pairs || !regions[a].is_surely_apart_from(regions[b])) return false;
  return true;
}

bool are_surely_apart(std::span<const StridedRegion> a, std::span<const StridedRegion> b) {
  if (a.size() > most_pairs || b.size() > most_pairs / std::max<std::size_t>(a.size(), 1)) return false;
  return std::ranges::all_of(a, [&](const StridedRegion& x) {
    return std::ranges::all_of(b, [&](const StridedRegion& y) { return x.is_surely_apart_from(y); });
  });
}

}  // namespace kplan
