#pragma once
// Collective steps taken by all ranks or by none: what each rank has found is gathered, and everyone throws the same.

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/schedule/schedule.hpp"
#include "kplan/transport.hpp"

namespace kplan {

/// One thing that must be the same on all ranks: what it is, and its value as people read it.
struct Fact {
  std::string what;
  std::string value;
};

/// The plan and the uniform values, as facts.
std::vector<Fact> uniform_facts(const BoundPlan& bound, const std::string& plan_digest);

/// Collective. If `failure` is set here, rethrows it; if it is on another rank, throws the same kind of error with that
/// rank's number; if a fact differs, PlanError KP-A001 or KP-A002 on every rank, saying which rank has what. Returns
/// where every rank stands in the plan's groups.
std::vector<std::vector<Place>> agree(transport::Transport& transport, const std::vector<Fact>& facts,
                                      const std::vector<Place>& places, const std::exception_ptr& failure,
                                      transport::Clock::time_point deadline);

/// Collective. As `agree`, with the messages of statements whose ends work their pattern out from different data: both
/// ends of each message must have found the same number of elements and the same where-bound values. KP-A003, on every
/// rank for the first such message by statement, sender and receiver. Writes down which statements are collective
/// operations, whether phases are the same everywhere, and which messages are taken whole. `schedule`: null where there
/// is a failure. `knowledge`: by statement. `choose` says what this rank would have an operation be; `whole`: what it
/// takes whole. Cost: an all-gather of a few bytes, and for such statements an announcement to each receiver before.
void agree_on_messages(transport::Transport& transport, Schedule* schedule, const PlanModel& plan,
                       const std::vector<Knowledge>& knowledge,
                       const std::function<void(const StatementSchedule&, CollectiveCandidates&)>& choose,
                       const std::vector<TakenWhole>& whole, const std::exception_ptr& failure,
                       transport::Clock::time_point deadline);

/// Collective. As `agree`, for kernels that were made after the messages were agreed on.
void agree_on_kernels(transport::Transport& transport, Schedule* schedule, const std::vector<TakenWhole>& whole,
                      const std::exception_ptr& failure, transport::Clock::time_point deadline);

}  // namespace kplan
