#pragma once
// The commands. Collective over `world`; each returns an exit code.

#include "tools/bench/options.hpp"
#include "tools/bench/team.hpp"

namespace kplan::bench {

int patterns(const Team& world, const Options& options);
int kernels(const Team& world, const Options& options);
int setup(const Team& world, const Options& options);
int ladder(const Team& world, const Options& options);

}  // namespace kplan::bench
