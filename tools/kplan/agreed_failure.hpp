#pragma once
// What went wrong, told to all ranks: they end with the same exit code, and one of them speaks.

#include <exception>
#include <string>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::cli {

/// The exit code that an error stands for: 2 for what the user can mend in the plan, the data or the arguments and for
/// what this version cannot do, else 1.
int exit_code_of(const std::exception& e);
/// What is said about it, after `kplan: `.
std::string text_of(const std::exception& e);

/// One rank's failure; an exit code of 0 stands for none.
struct Failure {
  int exit_code = 0;
  std::string code;  ///< KP-...
  std::string text;  ///< the message, and what underlines it
  bool is_failure() const { return exit_code != 0; }
};

/// The failure that an exception stands for; none for null.
Failure failure_of(const std::exception_ptr& thrown);

/// Collective: the failure of all ranks together, the same on each. Ranks that fail for the same reason are told of
/// once.
Failure exchange_failures(transport::Transport& transport, const Failure& mine);

/// Says what went wrong on stderr and returns the exit code. Under an MPI launcher it is collective over all processes:
/// the first of them speaks, and none ends before it has.
int report_together(const Failure& mine);
/// The same where ranks cannot meet over MPI, as when they are to run over libfabric: each speaks for itself.
int report_alone(const Failure& mine);
/// The same over a transport that is open.
int report_over(transport::Transport& transport, const Failure& agreed);

}  // namespace kplan::cli
