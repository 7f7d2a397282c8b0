#pragma once
// What rank 0 says: lines as they come, and the files at the end.

#include <string>

#include "tools/bench/options.hpp"
#include "tools/bench/plot.hpp"

namespace kplan::bench {

/// Prints on rank 0 only, at once.
void say(const Team& world, const std::string& text);

/// What stands before all results: machine, MPI and its settings, what is skipped.
void say_where(const Team& world, std::size_t flushed_bytes);

/// Writes the files that were asked for. Plots of several variants go to FILE.svg, FILE-cold.svg, ...
void write_files(const Team& world, const Options& options, const std::vector<Result>& results,
                 const std::vector<std::pair<std::string, Plot>>& plots);

}  // namespace kplan::bench
