#pragma once
// Which of two ways a plan's runs had better go, where that hangs on the processor, the caches, the system and the
// network, and on what else there is to do. So some runs go each way, all ranks in the same runs, and the way in which
// this rank's runs are shorter is kept in between.

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "kplan/transport.hpp"

namespace kplan {

/// The trials of one question of a plan on one rank. The first way is the one that is asked about.
class RunTrial {
 public:
  using Time = transport::Clock::time_point;
  /// How many runs a trial lasts.
  static constexpr std::uint64_t runs = 16;

  /// Trials begin in run `first` of each period, so that those of several questions do not meet. The first way is kept
  /// where runs take less than `worth_it` of what they take in the other, and before the first trial where it
  /// `is_likely`.
  RunTrial(std::uint64_t first, double worth_it, bool is_likely)
      : first_(first), worth_it_(worth_it), goes_first_way_(is_likely) {}

  /// That run begins; whether it goes the first way.
  bool begin(std::uint64_t run, Time now) {
    const std::uint64_t usual = run < seldom_period ? often_period : seldom_period;
    const std::uint64_t period = is_far_slower_ ? far_slower_periods * usual : usual;
    const std::uint64_t place = (run + period - first_) % period;
    is_timed_ = false;
    if (place >= runs) return goes_first_way_;
    const bool is_first_way = place < length;
    if (place % length >= unmeasured) {
      const std::uint64_t sample = place % length - unmeasured + (is_first_way ? 0 : samples);
      if (std::exchange(trial_, run - place) != run - place) count_ = 0;
      is_timed_ = sample == count_;  // none was left out
      spent_ = {};
      begin_ = now;
    }
    return is_first_way;
  }
  /// The program does something else from now on.
  void leave(Time now) { spent_ += now - begin_; }
  /// It has come back.
  void come_back(Time now) { begin_ = now; }
  /// The run has ended.
  void end(Time now) {
    if (!std::exchange(is_timed_, false)) return;
    times_[count_++] = spent_ + (now - begin_);
    if (count_ != times_.size()) return;
    const std::array took{median(0), median(samples)};
    const double first = std::min(took[0], last_[0]), other = std::min(took[1], last_[1]);
    last_ = took;
    goes_first_way_ = first < worth_it_ * other;
    is_far_slower_ = first > 2 * other;
  }

 private:
  /// At first more often: slots are new, and which way is faster may change.
  static constexpr std::uint64_t often_period = 128, seldom_period = 1024;
  /// A first way that took more than twice as long is tried once in so many periods.
  static constexpr std::uint64_t far_slower_periods = 4;
  static constexpr std::uint64_t length = runs / 2;
  static constexpr std::uint64_t unmeasured = 3;  ///< runs after a change: lines are where the runs before left them
  static constexpr std::size_t samples = length - unmeasured;  ///< of each way

  double median(std::size_t first) const {
    std::array<transport::Clock::duration, samples> sorted;
    std::copy_n(times_.begin() + static_cast<std::ptrdiff_t>(first), samples, sorted.begin());
    std::ranges::sort(sorted);
    return std::chrono::duration<double>(sorted[samples / 2]).count();
  }

  std::uint64_t first_;
  double worth_it_;
  std::array<transport::Clock::duration, 2 * samples> times_{};  ///< of runs that go the first way, then of others
  std::size_t count_ = 0;
  /// Seconds that runs took in the last trial, each way. The better of two trials counts: what else the machine does
  /// may fall on all runs that go one way.
  std::array<double, 2> last_{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  std::uint64_t trial_ = 0;  ///< its first run
  transport::Clock::duration spent_{};
  Time begin_;
  bool is_timed_ = false, goes_first_way_, is_far_slower_ = false;
};

}  // namespace kplan
