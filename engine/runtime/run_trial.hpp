#pragma once
// Which of two ways a plan's runs had better go, where that hangs on the processor, the caches, the system and the
// network, and on what else there is to do. So some runs go each way, all ranks in the same runs, and the way in which
// runs are shorter is kept in between: as the program sees them, with what this rank waits for others, so that the ends
// of a message mostly come to the same (halo of 64^3 over MPI, 128 KiB: 47 us packed, 65 in place, 106 one of each).

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "kplan/transport.hpp"

namespace kplan {

/// The trials of one question of a plan on one rank. The first way is the one that is asked about.
class RunTrial {
 public:
  using Time = transport::Clock::time_point;
  /// How many runs a trial lasts.
  static constexpr std::uint64_t runs = 16;

  /// Trials begin in run `first` of each period, so that those of several questions do not meet. The first way is
  /// taken up where runs are clearly shorter than `worth_it` of what they take in the other, and left where they are
  /// clearly longer; before the first trial it is taken where it `is_likely`.
  RunTrial(std::uint64_t first, double worth_it, bool is_likely)
      : first_(first), worth_it_(worth_it), goes_first_way_(is_likely) {}

  /// That run begins; whether it goes the first way.
  bool begin(std::uint64_t run, Time now) {
    const std::uint64_t period = period_at(run);
    const std::uint64_t place = (run + period - first_) % period;
    has_begun_ = true;
    is_timed_ = false;
    spent_ = {};
    begin_ = now;
    is_in_trial_ = place < runs;
    if (is_in_trial_ && std::exchange(trial_, run - place) != run - place) {
      count_ = 0;
      long_runs_ = 0;
      is_given_up_ = false;
    }
    is_in_trial_ = is_in_trial_ && !is_given_up_;
    if (!is_in_trial_) return goes_first_way_;
    const bool is_first_way = place < length;
    nth_ = place % length;
    tries_ = is_first_way != goes_first_way_;
    if (nth_ >= unmeasured) {
      const std::uint64_t sample = nth_ - unmeasured + (is_first_way ? 0 : samples);
      is_timed_ = sample == count_;  // none was left out
    }
    return is_first_way;
  }
  /// The program does something else from now on.
  void leave(Time now) { spent_ += now - begin_; }
  /// It has come back.
  void come_back(Time now) { begin_ = now; }
  /// The run has ended; nothing where it has not begun.
  void end(Time now) {
    if (!std::exchange(has_begun_, false)) return;
    const transport::Clock::duration took = spent_ + (now - begin_);
    if (!is_in_trial_) return note_usual(took);
    if (!tries_) usual_ = {usual_[1], seconds_of(took)};
    else if (nth_ + 1 >= unmeasured && gives_up(took)) return;
    if (!std::exchange(is_timed_, false)) return;
    times_[count_++] = took;
    if (count_ != times_.size()) return;
    const std::array took_each_way{undisturbed(0), undisturbed(samples)};
    const double first = std::min(took_each_way[0], last_[0]), other = std::min(took_each_way[1], last_[1]);
    goes_first_way_ = first < worth_it_ * (goes_first_way_ ? 1 / clearly : clearly) * other;
    is_first_far_slower_ = false;
    end_trial(took_each_way);
  }

 private:
  /// At first more often: memory and slots are new in the first trial, and which way is faster may change.
  static constexpr std::uint64_t first_period = 64, often_period = 128, seldom_period = 1024;
  /// A first way that was given up is tried once in so many periods.
  static constexpr std::uint64_t far_slower_periods = 4;
  static constexpr double clearly = 0.95;
  static constexpr std::uint64_t length = runs / 2;
  static constexpr std::uint64_t unmeasured = 3;  ///< runs after a change: lines are where the runs before left them
  static constexpr std::size_t samples = length - unmeasured;  ///< of each way
  static constexpr double far_longer = 1.5;
  /// The way that is tried is given up after so many runs in turn that take so much longer than the last ones of the
  /// other.
  static constexpr int hopeless_runs = 2;
  /// So many runs in turn that take so much longer than in the last trial say that it holds no more, as where a program
  /// comes to use its caches for something else.
  static constexpr int slow_runs = 16;

  /// A run between trials.
  void note_usual(transport::Clock::duration took) {
    usual_ = {usual_[1], seconds_of(took)};
    slow_runs_ = usual_[1] > far_longer * last_[goes_first_way_ ? 0 : 1] ? slow_runs_ + 1 : 0;
    if (slow_runs_ < slow_runs) return;
    is_outdated_ = true;
    is_first_far_slower_ = false;
    last_ = {infinity, infinity};
  }

  /// A run that went the way that is not kept.
  bool gives_up(transport::Clock::duration took) {
    const double usual = std::max(usual_[0], usual_[1]);
    long_runs_ = seconds_of(took) > far_longer * usual ? long_runs_ + 1 : 0;
    if (long_runs_ < hopeless_runs) return false;
    is_given_up_ = true;
    is_first_far_slower_ = !goes_first_way_;
    end_trial(goes_first_way_ ? std::array{usual, seconds_of(took)} : std::array{seconds_of(took), usual});
    return true;
  }

  void end_trial(std::array<double, 2> took) {
    last_ = took;
    is_outdated_ = false;
    slow_runs_ = 0;
  }

  /// How many runs lie between the trial before that run and the next one.
  std::uint64_t period_at(std::uint64_t run) const {
    if (run < 2 * first_period) return first_period;
    const std::uint64_t usual = run < seldom_period || is_outdated_ ? often_period : seldom_period;
    return is_first_far_slower_ ? far_slower_periods * usual : usual;
  }

  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  /// The second shortest of the times of one way: what else the machine does makes some longer, and so do caches that
  /// have still to get used to that way.
  double undisturbed(std::size_t first) const {
    std::array<transport::Clock::duration, samples> sorted;
    std::copy_n(times_.begin() + static_cast<std::ptrdiff_t>(first), samples, sorted.begin());
    std::ranges::sort(sorted);
    return seconds_of(sorted[1]);
  }
  static double seconds_of(transport::Clock::duration d) { return std::chrono::duration<double>(d).count(); }

  std::uint64_t first_;
  double worth_it_;
  std::array<transport::Clock::duration, 2 * samples> times_{};  ///< of runs that go the first way, then of others
  std::size_t count_ = 0;
  /// Seconds that runs took in the last trial, each way. The better of two trials counts: what else the machine does
  /// may fall on all runs that go one way.
  std::array<double, 2> last_{infinity, infinity};
  /// Seconds of the last two runs that went the way that is kept, the later one behind.
  std::array<double, 2> usual_{infinity, infinity};
  std::uint64_t trial_ = never;  ///< its first run
  std::uint64_t nth_ = 0;        ///< run of the trial that goes the same way
  transport::Clock::duration spent_{};
  Time begin_;
  bool has_begun_ = false, is_in_trial_ = false, is_timed_ = false, goes_first_way_;
  bool tries_ = false;                ///< the way that is not kept
  bool is_given_up_ = false;          ///< the trial
  bool is_first_far_slower_ = false;  ///< it was given up
  bool is_outdated_ = false;          ///< the last trial
  int long_runs_ = 0;                 ///< in turn, of the way that is tried
  int slow_runs_ = 0;                 ///< in turn, since the last trial
};

/// A way that runs of a plan may go or not. What the longest runs ask comes first: programs may make few of them.
enum class RunWay : std::uint8_t {
  in_place,        ///< messages that the transport takes from where they lie; else they are packed
  through_caches,  ///< what is written of long targets, else past them
  fetched,         ///< long messages in few blocks, by their receivers, which spares a copy; else through slots, which
                   ///< both ends work at and which nobody has to wait for
  in_pieces,       ///< long messages while about as much comes, which takes less of the caches; else whole
};

/// What is asked of one rank's runs of a plan, each question in runs of its own, and how each run goes. Two ranks that
/// answer differently are slower than both ways (records of 64 bytes, 1.25 MiB each way: 320 us in pieces, 450 whole,
/// 540 one of each). So a rank that sees which way the messages of ranks below it go, follows the lowest of them, a run
/// later, and asks nothing itself.
class RunTrials {
 public:
  using Time = RunTrial::Time;
  /// `rank`: this one.
  explicit RunTrials(int rank) { leaders_.fill({rank, rank, false}); }

  /// See RunTrial. Before the first run.
  void ask(RunWay way, double worth_it, bool is_likely) {
    const auto n = static_cast<std::size_t>(way);
    trials_[n].emplace(n * RunTrial::runs, worth_it, is_likely);
    are_asked_ = true;
  }
  bool are_asked() const { return are_asked_; }
  bool asks(RunWay way) const { return trials_[static_cast<std::size_t>(way)].has_value(); }
  /// A message has come from that rank, for which it asks the same, the first way or the other; or it has told so.
  void note_came(RunWay way, int from, bool is_first_way) {
    Leader& leader = leaders_[static_cast<std::size_t>(way)];
    if (from > leader.rank) return;
    leader.rank = from;
    leader.goes_first_way = is_first_way;
  }
  /// Whether the run under way goes that way. Not where nothing is asked.
  bool goes(RunWay way) const { return goes_[static_cast<std::size_t>(way)]; }

  /// That run begins. Where this rank does not wait in it, nothing is fetched or goes in pieces.
  void begin(std::uint64_t run, Time now, bool may_wait) {
    for (std::size_t n = 0; n < trials_.size(); ++n) {
      const auto way = static_cast<RunWay>(n);
      const bool needs_wait = way == RunWay::fetched || way == RunWay::in_pieces;
      const Leader& leader = leaders_[n];
      goes_[n] = trials_[n] && (may_wait || !needs_wait) &&
                 (leader.is_other() ? leader.goes_first_way : trials_[n]->begin(run, now));
    }
  }
  /// What follows counts for no way of the run; or does again.
  void leave(Time now) {
    for (auto& trial : trials_)
      if (trial) trial->leave(now);
  }
  void come_back(Time now) {
    for (auto& trial : trials_)
      if (trial) trial->come_back(now);
  }
  void end(Time now) {
    for (auto& trial : trials_)
      if (trial) trial->end(now);
  }

 private:
  /// Whom this rank follows.
  struct Leader {
    int rank, own_rank;
    bool goes_first_way;
    bool is_other() const { return rank != own_rank; }
  };
  std::array<std::optional<RunTrial>, 4> trials_;  ///< by way
  std::array<Leader, 4> leaders_;
  std::array<bool, 4> goes_{};
  bool are_asked_ = false;
};

}  // namespace kplan
