#pragma once
// Where the time of compiling a plan goes, measured on rank 0 of so many threads.

#include "jit/statistics.hpp"
#include "tools/kplan/contents.hpp"

namespace kplan::cli {

struct Timing {
  CompileTimes waiting;     ///< steps of a compile that waits for machine code, in a process that has none yet
  jit::Statistics kernels;  ///< of that compile, on all threads
  CompileTimes again;       ///< of the same plan with the same values
  CompileTimes at_once;     ///< of a compile that does not wait, no code being in memory
  double first_run_us = 0;  ///< from the call of that compile to the end of its first run
};

/// Throws what compiling and running throw.
Timing measure_timing(const Contents& contents, std::int64_t ranks);

std::string to_text(const Timing& timing);
std::string to_json(const Timing& timing);

}  // namespace kplan::cli
