// How it works: rounds; in each, every candidate gives one sample. Batch sizes, orders and the decision to stop are the
// same on all ranks: orders come from one seed, sizes from the slowest rank, and rank 0 looks at the clock. No rank
// goes on to another candidate, or to a collective call, before all are done with the last one: they drive it together.
#include "tools/bench/sampling.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

namespace kplan::bench {
namespace {

constexpr long largest_batch = 20000;

/// Microseconds of `count` runs on this rank, after a barrier.
double timed(const Team& team, const Candidate& c, long count) {
  drive_together(team);
  const Clock::time_point start = Clock::now();
  for (long k = 0; k < count; ++k) c.run();
  const double seconds = seconds_since(start);
  drive_together(team);
  return 1e6 * seconds;
}

/// One run after something that is not timed. A barrier in between would leave its own code and data in caches that
/// were emptied, MPI's as it were, and let ranks go one after the other. So they agree on a moment before, and all
/// begin then, where one clock serves them all.
class SingleRuns {
 public:
  SingleRuns(const Team& team, const std::function<void()>& before) : team_(team), before_(before) {
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(team.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int ranks = 0;
    MPI_Comm_size(machine, &ranks);
    MPI_Comm_free(&machine);
    has_one_clock_ = ranks == team.size;
    const Clock::time_point start = Clock::now();
    before_();
    allowance_seconds_ = 1.1 * largest(team, seconds_since(start));
  }

  /// Microseconds on this rank.
  double operator()(const Candidate& c) {
    if (!has_one_clock_) {
      before_();
      return timed(team_, c, 1);
    }
    for (;;) {
      drive_together(team_);
      auto begin = (Clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * allowance_seconds_)))
                       .time_since_epoch()
                       .count();
      static_assert(sizeof begin == sizeof(std::int64_t));
      MPI_Bcast(&begin, 1, MPI_INT64_T, 0, team_.comm);
      before_();
      const Clock::time_point start{Clock::duration(begin)};
      const bool is_late = Clock::now() > start;
      while (Clock::now() < start) continue;
      c.run();
      const double seconds = seconds_since(start);
      drive_together(team_);
      if (largest(team_, is_late ? 1.0 : 0.0) == 0) return 1e6 * seconds;
      allowance_seconds_ *= 1.25;
    }
  }

 private:
  const Team& team_;
  const std::function<void()>& before_;
  bool has_one_clock_ = false;
  double allowance_seconds_ = 0;
};

/// Some runs that are not timed, as many on all ranks: after these, what adapts to its first runs has done so.
void warm_up(const Team& team, const Candidate& c) {
  constexpr double most_runs = 192, most_us = 250'000;
  const double us = largest(team, timed(team, c, 1));
  for (auto left = static_cast<long>(std::min(most_runs, most_us / std::max(us, 1.0))); left > 0; --left) c.run();
}

/// How many runs take about batch_us on the slowest rank.
long calibrated(const Team& team, const Candidate& c, double batch_us) {
  warm_up(team, c);
  for (long count = 1;; count *= 4) {
    const double us = largest(team, timed(team, c, count));
    if (us >= batch_us / 4 || count >= largest_batch)
      return std::clamp(static_cast<long>(static_cast<double>(count) * batch_us / std::max(us, 1e-3)), 1L,
                        largest_batch);
  }
}

bool are_steady(const std::vector<std::vector<double>>& samples, double steady_at) {
  return std::ranges::all_of(samples, [&](const auto& s) { return summarise(s).uncertainty <= steady_at; });
}

/// Whether to go on; asked every few rounds, as working out medians takes time.
bool wants_more(const std::vector<std::vector<double>>& samples, const Limits& limits, double seconds) {
  const auto rounds = static_cast<int>(samples[0].size());
  if (rounds < limits.least_rounds) return seconds < 2 * limits.seconds || rounds < 3;
  if (seconds >= limits.seconds) return false;
  return rounds % 8 != 0 || !are_steady(samples, limits.steady_at);
}

}  // namespace

std::vector<Measured> sample(const Team& team, const std::vector<Candidate>& candidates, const Limits& limits,
                             const std::function<void()>& before) {
  if (candidates.empty()) return {};
  const Clock::time_point start = Clock::now();
  std::vector<long> batches;
  for (const Candidate& c : candidates) batches.push_back(before ? 1 : calibrated(team, c, limits.batch_us));
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(20090701);
  std::optional<SingleRuns> single;
  if (before) single.emplace(team, before);
  std::vector<double> mine(candidates.size()), slowest(candidates.size());
  std::vector<std::vector<double>> samples(candidates.size());
  do {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t k : order) {
      if (single) {
        mine[k] = (*single)(candidates[k]);
        continue;
      }
      for (long w = 0; w < 1 + batches[k] / 10; ++w) candidates[k].run();
      mine[k] = timed(team, candidates[k], batches[k]) / static_cast<double>(batches[k]);
    }
    MPI_Allreduce(mine.data(), slowest.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, team.comm);
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      samples[k].push_back(slowest[k]);
      // Runs that were slow in the beginning, or while they were counted, have left batches that are mostly their ends.
      if (!before && slowest[k] * static_cast<double>(batches[k]) < limits.batch_us / 2)
        batches[k] = std::min(2 * batches[k], largest_batch);
    }
  } while (decided_by_first(team, wants_more(samples, limits, seconds_since(start))));
  std::vector<Measured> out;
  for (std::size_t k = 0; k < candidates.size(); ++k)
    out.push_back({summarise(samples[k]), static_cast<long>(samples[k].size()), batches[k]});
  return out;
}

}  // namespace kplan::bench
