#pragma once
// Collective operations by hand, as programs write them for a few ranks: persistent messages to and from each root,
// sums by a plain loop.

#include <span>
#include <vector>

#include "tools/bench/methods/method.hpp"
#include "tools/bench/team.hpp"

namespace kplan::bench {

/// x of rank 0 to all, then what came in x from the last rank to `back` of all others.
Method hand_broadcasts(const Team& team, std::span<double> x, std::span<double> back);

/// Where a sum is to be.
struct Root {
  int rank;
  std::span<double> result;
};
/// The sum of x over all ranks at each root, all at once.
Method hand_sums(const Team& team, std::span<double> x, const std::vector<Root>& roots);

}  // namespace kplan::bench
