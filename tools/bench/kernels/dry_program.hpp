#pragma once
// kplan's kernels without an exchange: a plan compiled for one of the ranks of a case as in a run, but for the
// channels.

#include <memory>

#include "engine/bind.hpp"
#include "engine/runtime/program.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {

class DryProgram {
 public:
  /// The program of `cases[rank]`; what other ranks would tell it is worked out from their cases.
  DryProgram(const std::vector<Case>& cases, int rank);

  /// The message to `peer`: its length, and its making. Of plans of one statement.
  std::size_t bytes_to(int peer) const;
  void pack(int peer, std::byte* message);
  /// Whether it is sent from where it lies, so that there is nothing to pack.
  bool is_in_place(int peer) const;
  /// Applies a message from `peer`, or what stays on this rank.
  void unpack(int peer, const std::byte* message);
  void move_local();
  std::size_t kernel_count() const { return program_.specs.size(); }

 private:
  OutgoingMessage& outgoing(int peer);
  StatementProgram& statement() { return program_.statements.at(0); }

  std::vector<BoundValues> values_;  ///< of all ranks; programs refer to them
  Program program_;
  std::vector<BoundMemory> memory_;
};

}  // namespace kplan::bench
