#pragma once
// What a varying pattern comes to on one rank, in one run or in all that meet it again.

#include <optional>

#include "engine/runtime/pattern_letter.hpp"
#include "engine/runtime/program.hpp"
#include "engine/runtime/run_context.hpp"

namespace kplan {

struct FoundPattern {
  std::optional<BoundPlan> bound;  ///< as the statement's group sees it; nullopt: it could not be found
  StatementSchedule schedule;
  /// Once they are made. One of a run before may be left there until then: it keeps the code that both use.
  std::optional<StatementProgram> sending, receiving;

  bool has_part() const { return bound && schedule.size > 0; }  ///< this rank in it

  void make_sending(const RunContext& context, Reuse reuse);
  void make_receiving(const RunContext& context, Reuse reuse);
  /// Messages of so many bytes and more may be sent from where they lie, or received where they go, where that is in
  /// long blocks; 0: none. After make_sending(), and after make_receiving().
  void place_sent(std::size_t least_bytes);
  void place_received(std::size_t least_bytes);
  /// Reads what stays on this rank, where it cannot be moved directly, before anything is written.
  void stage(const RunContext& context);
  /// Applies what has come, and what stays; bodies of letters are there already where `placement` says so.
  void apply(const RunContext& context, const ArrivedPatterns& arrived);
};

}  // namespace kplan
