#pragma once
// The command line, taken apart: one structure for all commands, since they share most of their options.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kplan/error.hpp"

namespace kplan::cli {

/// The exit codes of every command.
inline constexpr int exit_done = 0, exit_failed = 1, exit_wrong = 2;

struct Options {
  std::string command;  ///< check, explain, show, run
  std::string plan_file;
  std::optional<std::int64_t> ranks, rank;
  std::vector<std::string> settings;  ///< name=value
  std::optional<std::string> data_file;
  bool has_timing = false;
  bool is_json = false;
  std::string stage;                     ///< show
  std::optional<std::string> transport;  ///< run
  std::int64_t repeat = 1;
  std::vector<std::string> printed;  ///< buffers, in the order in which they are printed
  bool verify = false;
};

/// What the arguments ask for: a command, or something that is said at once (help, the version, a mistake).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = exit_done;
  std::string output, errors;
};
ParsedOptions parse_options(int argc, char** argv);

/// An argument that is well-formed and wrong. Codes are KP-L0xx.
PlanError argument_error(const std::string& code, const std::string& message);

/// The rank asked for, or 0; checked against the number of ranks.
std::int64_t chosen_rank(const Options& options, std::int64_t ranks);

}  // namespace kplan::cli
