#pragma once
// Which way a sender writes slots whose lines are far: past the caches, through them in whole lines, or as kernels do.
// Which is fastest hangs on the processor, and on what else moves: on one the first is four times as fast as the last,
// on another half as fast, since receivers then read from memory. So while lines look far, some messages go
// each way, both ends measure what they take, the receiver tells the sender, and the fastest way is kept for some
// thousands. Which messages these may be, both ends know by their numbers; whether there is a trial, the sender decides
// when it comes to the first of them. How far lines are does not say enough: what was written past the caches comes
// back from memory, as from afar, and is found near by the next trial.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kplan/transport.hpp"

namespace kplan::transport {

/// The trials of one ring.
class StoreTrial {
 public:
  /// In the order in which they are tried.
  static constexpr std::array<Stores, 3> ways{Stores::non_temporal, Stores::whole_lines, Stores::cached};
  static constexpr std::size_t samples = 7;           ///< of each way
  static constexpr std::uint64_t again_after = 4096;  ///< messages, while lines look far

  /// `first`: the message with which the first trial may begin; others may after every 512. The lines of a slot are
  /// where the messages one turn of the ring before have left them, so as many messages after a change do not count.
  /// `is_on`: else there are none.
  StoreTrial(std::uint64_t first, std::uint64_t slots, bool is_on)
      : first_(first), slots_(slots), length_(is_on && slots <= most_slots ? slots + samples : 0) {}

  /// Whether a message belongs to a trial, if there is one, and of which way.
  bool is_tried(std::uint64_t seq) const { return place(seq) < ways.size() * length_; }
  Stores way(std::uint64_t seq) const { return ways[static_cast<std::size_t>(place(seq) / length_)]; }
  /// Whether it is measured, and as which of all that are.
  bool is_timed(std::uint64_t seq) const { return is_tried(seq) && place(seq) % length_ >= slots_; }
  std::size_t sample(std::uint64_t seq) const {
    return static_cast<std::size_t>(place(seq) / length_ * samples + place(seq) % length_ - slots_);
  }
  bool is_first(std::uint64_t seq) const { return place(seq) == 0; }
  bool is_last(std::uint64_t seq) const { return place(seq) + 1 == ways.size() * length_; }
  /// Whether the receiver has released the last one, and so told what it has measured, when this message is sent.
  bool is_over(std::uint64_t seq) const { return place(seq) >= ways.size() * length_ + slots_; }

 private:
  static constexpr std::uint64_t period = 512, most_slots = 96;
  std::uint64_t place(std::uint64_t seq) const { return seq < first_ ? period : (seq - first_) % period; }

  std::uint64_t first_, slots_, length_;
};

/// The times of one end, in one word: for each way 21 bits, of 4 ns each. 0: they are not known.
class TrialMedians {
 public:
  TrialMedians() = default;
  explicit TrialMedians(std::uint64_t word) : word_(word) {}
  explicit TrialMedians(const std::array<Clock::duration, StoreTrial::ways.size()>& times) {
    for (std::size_t k = 0; k < times.size(); ++k) {
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(times[k]).count();
      word_ |= static_cast<std::uint64_t>(std::clamp<std::int64_t>(ns / unit_ns, 1, mask)) << (bits * k);
    }
  }
  std::uint64_t word() const { return word_; }
  /// Which way is the fastest for both ends together; `cached` where one could not tell, or no other takes a sixteenth
  /// less: what a program writes afresh every time is read from far away, and that such stores wait for least.
  static Stores fastest(TrialMedians writing, TrialMedians reading) {
    if (writing.word_ == 0 || reading.word_ == 0) return Stores::cached;
    const auto both = [&](std::size_t way) { return writing.at(way) + reading.at(way); };
    constexpr std::size_t cached = StoreTrial::ways.size() - 1;
    static_assert(StoreTrial::ways[cached] == Stores::cached);
    std::size_t best = 0;
    for (std::size_t k = 1; k < cached; ++k)
      if (both(k) < both(best)) best = k;
    return 16 * both(best) < 15 * both(cached) ? StoreTrial::ways[best] : Stores::cached;
  }

 private:
  static constexpr unsigned bits = 21;
  static constexpr std::int64_t unit_ns = 4, mask = (std::int64_t{1} << bits) - 1;
  std::uint64_t at(std::size_t way) const { return word_ >> (bits * way) & static_cast<std::uint64_t>(mask); }
  std::uint64_t word_ = 0;
};

/// What one end has measured in a trial.
class TrialTimes {
 public:
  void clear() { count_ = 0; }
  void add(std::size_t sample, Clock::duration took) {
    times_[sample] = took;
    ++count_;
  }
  /// Of every way; not known where some messages were not measured.
  TrialMedians medians() const {
    if (count_ != times_.size()) return {};
    std::array<Clock::duration, StoreTrial::ways.size()> out;
    for (std::size_t k = 0; k < out.size(); ++k) {
      std::array<Clock::duration, StoreTrial::samples> sorted;
      std::copy_n(times_.begin() + static_cast<std::ptrdiff_t>(k * sorted.size()), sorted.size(), sorted.begin());
      std::ranges::sort(sorted);
      out[k] = sorted[sorted.size() / 2];
    }
    return TrialMedians(out);
  }

 private:
  std::array<Clock::duration, StoreTrial::ways.size() * StoreTrial::samples> times_{};
  std::size_t count_ = 0;
};

}  // namespace kplan::transport
