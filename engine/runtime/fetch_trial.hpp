#pragma once
// Whether long messages that lie in one region are fetched from there by their receivers, which spares a copy, or go
// through slots, which both ends work at and which nobody has to wait for. Which is faster hangs on the processor, the
// caches, the system, and on what else there is to do. So some runs go each way, all ranks in the same runs, and the
// way in which this rank's runs are shorter is kept in between.

#include <algorithm>
#include <array>
#include <utility>

#include "kplan/transport.hpp"

namespace kplan {

/// The trials of one plan on one rank.
class FetchTrial {
 public:
  using Time = transport::Clock::time_point;

  /// That run begins; whether its messages are to be fetched.
  bool begin(std::uint64_t run, Time now) {
    const std::uint64_t place = run % (run < seldom_period ? often_period : seldom_period);
    is_timed_ = false;
    if (place >= 2 * length) return are_fetched_;
    const bool fetches = place < length;
    if (place % length >= unmeasured) {
      const std::uint64_t sample = place % length - unmeasured + (fetches ? 0 : samples);
      if (std::exchange(trial_, run - place) != run - place) count_ = 0;
      is_timed_ = sample == count_;  // none was left out
      begin_ = now;
    }
    return fetches;
  }
  /// It has ended.
  void end(Time now) {
    if (!std::exchange(is_timed_, false)) return;
    times_[count_++] = now - begin_;
    if (count_ == times_.size()) are_fetched_ = median(0) < worth_it * median(samples);
  }

 private:
  /// At first more often: slots are new, and which are faster may change.
  static constexpr std::uint64_t often_period = 128, seldom_period = 1024;
  static constexpr std::uint64_t unmeasured = 3;  ///< runs after a change: lines are where the runs before left them
  static constexpr std::size_t samples = 5;       ///< of each way
  static constexpr std::uint64_t length = unmeasured + samples;
  static constexpr double worth_it = 0.95;

  double median(std::size_t first) const {
    std::array<transport::Clock::duration, samples> sorted;
    std::copy_n(times_.begin() + static_cast<std::ptrdiff_t>(first), samples, sorted.begin());
    std::ranges::sort(sorted);
    return std::chrono::duration<double>(sorted[samples / 2]).count();
  }

  std::array<transport::Clock::duration, 2 * samples> times_{};  ///< of runs that fetch, then of others
  std::size_t count_ = 0;
  std::uint64_t trial_ = 0;  ///< its first run
  Time begin_;
  bool is_timed_ = false, are_fetched_ = false;
};

}  // namespace kplan
