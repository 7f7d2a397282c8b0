#pragma once
// Messages that lie in many regions of a process's memory, in the order in which they travel, as the system takes them.

#include <sys/uio.h>

#include <cassert>
#include <cstddef>
#include <span>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::transport {

/// Where messages lie at one end of a channel.
class Place {
 public:
  /// Whether that is elsewhere than before.
  bool move_to(std::span<const Blocks> blocks);
  /// Its regions, those that follow each other joined.
  std::span<const iovec> regions() const { return regions_; }

 private:
  std::vector<Blocks> blocks_;
  std::vector<iovec> regions_;
};

/// A place in a list of regions, which must stay. Of no list there is nothing left.
class RegionCursor {
 public:
  RegionCursor() = default;
  explicit RegionCursor(std::span<const iovec> regions) : regions_(regions) {}

  bool is_at_end() const { return next_ == regions_.size(); }
  /// What is left of the region that it is in.
  iovec region() const {
    return {static_cast<std::byte*>(regions_[next_].iov_base) + done_, regions_[next_].iov_len - done_};
  }
  /// By at most so many bytes as are left.
  void advance(std::size_t bytes) {
    for (done_ += bytes; next_ < regions_.size() && done_ >= regions_[next_].iov_len; ++next_)
      done_ -= regions_[next_].iov_len;
    assert(!is_at_end() || done_ == 0);
  }
  /// The regions from there on, as many as there is room for; how many.
  std::size_t list(std::span<iovec> out) const {
    std::size_t count = 0;
    for (std::size_t k = next_; k < regions_.size() && count < out.size(); ++k, ++count) out[count] = regions_[k];
    if (count > 0) out[0] = region();
    return count;
  }

 private:
  std::span<const iovec> regions_;
  std::size_t next_ = 0, done_ = 0;  ///< bytes of that region
};

}  // namespace kplan::transport
