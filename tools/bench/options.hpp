#pragma once
// The command line, taken apart: the commands share most of their options.

#include <optional>
#include <string>

namespace kplan::bench {

struct Options {
  std::string command;  ///< patterns, kernels, ladder, setup
  std::string json_file, plot_file;
  std::optional<double> seconds;  ///< for all that is measured together
  std::string only = ".*", methods = ".*";
  bool is_list = false;
  bool rewrites = false;  ///< also measure runs before which each rank writes what it sends
  bool has_mpi_defaults = false;
  std::optional<double> flush_mib;

  bool wants(const std::string& workload) const;
  bool wants_method(const std::string& method) const;
};

/// What the arguments ask for, or what is said at once (help, a mistake), with an exit code.
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
  std::string output, errors;
};
ParsedOptions parse_options(int argc, char** argv);

}  // namespace kplan::bench
