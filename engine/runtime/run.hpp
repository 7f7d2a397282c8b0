#pragma once
// One run of a program: begin and finish, phase by phase.

#include "engine/runtime/program.hpp"

namespace kplan {

class Runner {
 public:
  Runner(Program program, std::shared_ptr<transport::Transport> transport, std::chrono::nanoseconds timeout);

  std::vector<BoundMemory>& memory() { return memory_; }
  Program& program() { return program_; }
  void parameters_changed() { are_parameters_new_ = true; }
  bool is_started() const { return is_started_; }

  void start();
  void wait();

 private:
  void begin(const std::vector<int>& phase);
  void finish(const std::vector<int>& phase);
  bool take_arrived(StatementProgram& s);
  void apply(StatementProgram& s, IncomingMessage& m, std::byte* message);
  void note_zero_divisor(const StatementProgram& s, const ReadyCall& call, bool is_value);
  /// One peer that is waited for.
  struct Wait {
    int peer;
    std::string text;
  };
  static Wait taking(const OutgoingMessage& m);
  template <class Ready, class Waiting>
  void wait_until(int statement, const Ready& ready, const Waiting& waiting);
  [[noreturn]] void fail(const char* code, const std::string& what) const;

  Program program_;
  std::shared_ptr<transport::Transport> transport_;
  std::chrono::nanoseconds timeout_;
  std::vector<BoundMemory> memory_;
  std::uint64_t run_ = 0;
  bool is_started_ = false, are_parameters_new_ = false, is_broken_ = false;
  std::string zero_divisor_;  ///< the first of this run, thrown when it has ended on all channels
};

}  // namespace kplan
