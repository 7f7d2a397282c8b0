#pragma once
// All-reduces of long messages in two steps (Rabenseifner, ICCS 2004, without his tree): every rank combines a share of
// the elements and then gives it to the others. A rank sends and receives 2 (size - 1) / size messages' worth then,
// instead of size - 1, and combines one message's worth in all.

#include "engine/schedule/schedule.hpp"
#include "transports/environment.hpp"

namespace kplan {

struct TwoStepLimits {
  /// How many a message has at least; 0: never, as where the transport's own operations are asked for.
  std::size_t least_bytes =
      transport::native_collectives_from_environment() == transport::NativeCollectives::wherever_possible
          ? 0
          : transport::two_step_bytes_from_environment();
  /// Two ranks send as much in two steps as in one, but combine half as much: where they share no memory, that pays for
  /// the second step from 16 times as many bytes on.
  bool serves_two_ranks = false;
};

/// Whether, as far as this rank's messages show, the statement can go in two steps, and had better: it is `fresh`, so
/// that the result is the same on all ranks, bit by bit as in one step, and each message goes to all of the same
/// places.
bool can_go_in_two_steps(const Statement& s, const StatementSchedule& schedule, const TwoStepLimits& limits);

/// What a rank does in the two steps of such a statement.
struct Steps {
  StatementSchedule first, second;
};
Steps steps_of(const Statement& s, const StatementSchedule& schedule);

/// Whether some statement is to go in two steps.
bool has_two_steps(const Schedule& schedule);

/// A plan in which some statements are two.
struct Divided {
  std::shared_ptr<const PlanModel> model;
  Schedule schedule;
};

/// Puts a second statement after each phase for each of its statements that go in two steps, as all ranks agree; they
/// have common phases. The statements after it have other numbers then.
Divided divide(std::shared_ptr<const PlanModel> model, const Schedule& schedule);

}  // namespace kplan
