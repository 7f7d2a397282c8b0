#pragma once
// Which way a sender writes slots whose lines are far: past the caches or through them. On one processor the first is
// four times as fast, on another it may be half as fast, since receivers then read from memory. So from time to time
// some messages go each way, both ends measure what they take, the receiver tells the sender, and the faster way is
// kept in between. Which messages these are, both ends know by their numbers. How far lines are does not say enough:
// what was written past the caches comes back from memory, as from afar.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kplan/transport.hpp"

namespace kplan::transport {

/// The trials of one ring.
class StoreTrial {
 public:
  enum class Way : std::uint8_t { past_caches, through_caches };

  /// `first`: the message with which the first trial begins. The lines of a slot are where the messages one turn of the
  /// ring before have left them, so as many messages after a change do not count. `is_on`: else there are none.
  StoreTrial(std::uint64_t first, std::uint64_t slots, bool is_on)
      : first_(first), slots_(slots), length_(is_on && slots <= most_slots ? slots + samples : 0) {}

  /// Whether a message belongs to a trial, of which way.
  bool is_tried(std::uint64_t seq) const { return place(seq) < 2 * length_; }
  Way way(std::uint64_t seq) const { return place(seq) < length_ ? Way::past_caches : Way::through_caches; }
  /// Whether it is measured, and as which of all that are.
  bool is_timed(std::uint64_t seq) const { return is_tried(seq) && place(seq) % length_ >= slots_; }
  std::size_t sample(std::uint64_t seq) const {
    return static_cast<std::size_t>(place(seq) / length_ * samples + place(seq) % length_ - slots_);
  }
  bool is_first(std::uint64_t seq) const { return place(seq) == 0; }
  bool is_last(std::uint64_t seq) const { return place(seq) + 1 == 2 * length_; }
  /// Whether the receiver has released the last one, and so told what it has measured, when this message is sent.
  bool is_over(std::uint64_t seq) const { return place(seq) >= 2 * length_ + slots_; }

  static constexpr std::size_t samples = 7;  ///< of each way

 private:
  static constexpr std::uint64_t period = 4096, most_slots = 256;
  std::uint64_t place(std::uint64_t seq) const { return seq < first_ ? period : (seq - first_) % period; }

  std::uint64_t first_, slots_, length_;
};

/// What one end has measured in a trial.
class TrialTimes {
 public:
  void clear() { count_ = 0; }
  void add(std::size_t sample, Clock::duration took) {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
    times_[sample] = static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns, 1, UINT32_MAX));
    ++count_;
  }
  /// The medians of both ways, past the caches in the upper half; 0 where some messages were not measured.
  std::uint64_t medians() const {
    if (count_ != 2 * StoreTrial::samples) return 0;
    return std::uint64_t{median(0)} << 32 | median(StoreTrial::samples);
  }

 private:
  std::uint32_t median(std::size_t first) const {
    std::array<std::uint32_t, StoreTrial::samples> sorted;
    std::copy_n(times_.begin() + static_cast<std::ptrdiff_t>(first), sorted.size(), sorted.begin());
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }

  std::array<std::uint32_t, 2 * StoreTrial::samples> times_{};
  std::size_t count_ = 0;
};

/// Which way is faster for both ends together. 0: that end could not tell; then it is through the caches.
inline StoreTrial::Way faster_way(std::uint64_t writing, std::uint64_t reading) {
  const auto past = [](std::uint64_t medians) { return medians >> 32; };
  const auto through = [](std::uint64_t medians) { return medians & UINT32_MAX; };
  const bool is_known = writing != 0 && reading != 0;
  return is_known && past(writing) + past(reading) < through(writing) + through(reading)
             ? StoreTrial::Way::past_caches
             : StoreTrial::Way::through_caches;
}

}  // namespace kplan::transport
