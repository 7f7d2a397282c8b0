#pragma once
// What a command has measured: rows for people, a document and a plot for programs and papers.

#include <string>
#include <vector>

#include "tools/bench/machine.hpp"
#include "tools/bench/sampling.hpp"

namespace kplan::bench {

/// One method on one workload in one variant.
struct Result {
  std::string workload;
  int ranks = 1;
  std::size_t bytes = 0;  ///< that a rank sends to others in one run, of the rank that sends most
  std::string variant;    ///< warm, cold, both-ways, dry
  std::string method;
  Measured measured;
  double ratio = 0;            ///< to the median of kplan's base row; 0 where there is none
  bool is_best_other = false;  ///< the fastest of what is not kplan
  Json more = Json::object();  ///< further numbers, such as memory
  bool is_wrong = false;       ///< has left something else in memory than it should; counts nowhere
};

/// Fills in ratios and marks the best alternative among rows of the same workload, ranks, bytes and variant. kplan's
/// rows are those whose method's name begins with `kplan`, and ratios are to the one named `base`, which makes no
/// conditions; those that end in `(limit)` are no alternatives.
void compare(std::vector<Result>& rows, const std::string& base = "kplan");

/// `{"machine": ..., "mpi": ..., "results": [...]}`
Json document(const std::vector<Result>& results);
void write_json(const std::string& path, const std::vector<Result>& results);

/// 12.3 us, 1.20 ms: three digits.
std::string text_of_us(double us);
/// 64 B, 16 KiB, 1.5 MiB
std::string text_of_bytes(std::size_t bytes);

/// 1.23, 0.012
std::string text_of_ratio(double ratio);

/// What the columns of tables and the summary mean.
std::string legend();

/// The rows of one workload, methods down and variants across: median, p10, spread and ratio to kplan.
std::string table(const std::vector<Result>& rows);

/// How the best alternative of every workload stands against each of kplan's methods, by variant.
std::string summary(const std::vector<Result>& results);

}  // namespace kplan::bench
