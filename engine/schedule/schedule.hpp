#pragma once
// What one rank does in a run of a plan, as plain data: the messages of each statement, where their elements lie at
// this end, in which order what arrives is applied, and which statements may overlap. Printable, comparable, the same
// whichever transport runs it. Sizes and positions are in bytes.

#include <string>
#include <vector>

#include "engine/analysis/pattern.hpp"

namespace kplan {

/// A share of a message: a piece of one reduction, whose last track is the message itself.
struct Transfer {
  int reduction = 0;
  Piece piece;               ///< sending: value tracks and the message; receiving: the place and the message
  bool is_assign = true;     ///< receiving: assign, though the operator may be another (`fresh`)
  bool is_injective = true;  ///< receiving: no place is met twice in the piece
  bool operator==(const Transfer&) const = default;
};

struct Message {
  std::int64_t peer = 0;
  std::int64_t payload_bytes = 0;  ///< elements times their size on the way
  std::int64_t bytes = 0;          ///< payload and what aligns segments
  std::int64_t element_count = 0;
  std::uint64_t digest = 0;         ///< of claims, see Segment
  std::vector<Transfer> transfers;  ///< in the order in which they are done
  bool operator==(const Message&) const = default;
};

struct StatementSchedule {
  int statement = 0;
  std::string name;
  Knowledge knowledge;
  std::vector<ValueForm> values;                   ///< by reduction
  std::vector<Message> sends, receives;            ///< ascending peer, without this rank itself
  std::vector<Message> local_send, local_receive;  ///< none or one: this rank to itself
  bool is_in_sender_order = false;  ///< some place is met from several ranks, and so arrival order is not good enough
  bool reads_what_it_writes = false;
  bool compares_ends =
      false;  ///< the ends of a message may differ in what they expect: they compare when the plan is compiled
};

struct Schedule {
  std::string plan;
  std::int64_t rank = 0, size = 1;
  std::vector<StatementSchedule> statements;
  /// Statements (by number) that run together: none touches what another of the phase writes.
  std::vector<std::vector<int>> phases;
};

/// Works out the schedule of the rank of `bound.state`. Throws PlanError (bounds, double assignment, ranks, counts) and
/// Unsupported for what the engine does not run yet. Collective over nobody: a dry run is this.
Schedule build_schedule(const BoundPlan& bound);

/// The same for one statement alone, whatever the others are.
StatementSchedule build_statement_schedule(const BoundPlan& bound, std::size_t number);

/// The schedule as a JSON document for people and tests.
std::string to_json(const Schedule& schedule, const PlanModel& plan);

/// Appends the message as the piece's last track: elements of the given size one after the other from `offset_bytes`
/// on.
void add_message_track(Piece& piece, std::int64_t offset_bytes, std::int64_t element_bytes);

/// What is received in one statement, in the order of application, checked for places that are assigned twice.
struct Applications {
  std::vector<Message> messages;  ///< by flow
  bool is_in_sender_order = false;
};
Applications order_applications(const BoundPlan& bound, const Statement& s, const std::vector<Flow>& receives);

}  // namespace kplan
