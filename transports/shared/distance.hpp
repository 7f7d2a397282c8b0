#pragma once
// How far away the lines of slots are that this rank writes after a peer has read them, or reads after a peer has
// written them: whether its core and the peer's share a cache. Where they do not, such a line takes four times as long
// to come back as to be written to memory past the caches. A system moves processes, and a hypervisor processors, so it
// is looked at again and again.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>

namespace kplan::transport {

class Distance {
 public:
  /// Lines that take so long to get are far; 0: all are.
  explicit Distance(std::chrono::nanoseconds far) : far_(far), is_far_(far.count() == 0) {}

  /// Whether the peer's lines are far, as far as it is known, before so many bytes are written or read there.
  /// `line`: one of them, of 8 bytes and more that only this rank writes or reads now; null: none is at hand.
  bool is_far(std::byte* line, std::size_t bytes) {
    if ((unseen_bytes_ += bytes) >= bytes_a_look_ && line && far_.count() > 0) look(line);
    return is_far_;
  }

 private:
  // A look takes as long as 10 KiB do where cores are far.
  static constexpr std::size_t soon = std::size_t{32} << 10, later = std::size_t{1} << 20;
  static constexpr int enough_votes = 3;

  [[gnu::noinline]] void look(std::byte* line) {
    unseen_bytes_ = 0;
    const auto begin = std::chrono::steady_clock::now();
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line)).fetch_or(0);
    const auto took = std::chrono::steady_clock::now() - begin;
    if (took > 3 * far_) return;  // it came from memory, or this rank had to wait
    votes_ = std::clamp(votes_ + (took >= far_ ? 1 : -1), -enough_votes, enough_votes);
    const bool are_enough = std::abs(votes_) == enough_votes;
    if (are_enough) is_far_ = votes_ > 0;
    bytes_a_look_ = are_enough ? later : soon;
  }

  std::chrono::nanoseconds far_;
  std::size_t unseen_bytes_ = 0;  ///< since the last look
  std::size_t bytes_a_look_ = soon;
  int votes_ = 0;  ///< of the last looks, for far
  bool is_far_;
};

/// The distances of a rank's peers.
class Distances {
 public:
  /// Where ranks `share_cores`, what a line takes tells of switches between them: none is far, unless all are.
  Distances(std::chrono::nanoseconds far, bool share_cores) : far_(share_cores && far.count() > 0 ? never : far) {}
  /// Of what this rank writes for the peer, or reads of what the peer has written, perhaps past the caches.
  std::shared_ptr<Distance> to(int peer) { return of(to_, peer); }
  std::shared_ptr<Distance> from(int peer) { return of(from_, peer); }

 private:
  using ByPeer = std::map<int, std::shared_ptr<Distance>>;
  static constexpr std::chrono::nanoseconds never = std::chrono::hours(1);
  std::shared_ptr<Distance> of(ByPeer& known, int peer) const {
    auto& distance = known[peer];
    if (!distance) distance = std::make_shared<Distance>(far_);
    return distance;
  }
  std::chrono::nanoseconds far_;
  ByPeer to_, from_;
};

}  // namespace kplan::transport
