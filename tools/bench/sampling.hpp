#pragma once
// The one measuring loop: candidates take turns in random order, so that what disturbs the machine disturbs them alike.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tools/bench/statistics.hpp"
#include "tools/bench/team.hpp"

namespace kplan::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What is measured: one run of it, which all ranks of the team make.
struct Candidate {
  std::string name;
  std::function<void()> run;
};

struct Limits {
  double seconds = 1;       ///< for all candidates together, calibration included
  double steady_at = 0.02;  ///< stop when every median is as sure as that (Summary::uncertainty)
  int least_rounds = 7;     ///< of each candidate, also when they take longer
  double batch_us = 250;    ///< runs are timed together until a batch takes that long; after `before` one by one
};

struct Measured {
  Summary us;        ///< of one run
  long samples = 0;  ///< that the summary rests on
  long batch = 0;    ///< timed runs of each
};

/// Collective. Measures all candidates; a sample is a batch of runs between two readings of the clock after a barrier,
/// as the slowest rank saw it. `before` null: warm, each batch after some runs that are not timed, the first after 192,
/// or a quarter of a second; else one run after each rank has called it, such as to empty the caches, which ranks of
/// one machine begin by the clock.
std::vector<Measured> sample(const Team& team, const std::vector<Candidate>& candidates, const Limits& limits,
                             const std::function<void()>& before);

}  // namespace kplan::bench
