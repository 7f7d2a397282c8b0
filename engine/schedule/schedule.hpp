#pragma once
// What one rank does in a run of a plan, as plain data: the messages of each statement, where their elements lie at
// this end, in which order what arrives is applied, and which statements may overlap. Printable, comparable, the same
// whichever transport runs it. Sizes and positions are in bytes. Ranks are numbers in the statement's group.

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/analysis/pattern.hpp"
#include "engine/schedule/collective.hpp"

namespace kplan {

/// A piece of one reduction, whose last track is the message itself.
struct MessagePart {
  int reduction = 0;
  Piece piece;               ///< sending: value tracks and the message; receiving: the place and the message
  bool is_assign = true;     ///< receiving: assign, though the operator may be another (`fresh`)
  bool is_injective = true;  ///< receiving: no place is met twice in the piece
  bool operator==(const MessagePart&) const = default;
};

struct Message {
  std::int64_t peer = 0;
  std::int64_t payload_bytes = 0;  ///< elements times their size on the way
  std::int64_t bytes = 0;          ///< payload and what aligns segments
  std::int64_t element_count = 0;
  std::uint64_t digest = 0;        ///< of claims, see Segment
  std::vector<MessagePart> parts;  ///< in the order in which they are done
  bool is_taken_whole = false;     ///< sent: the receiver has said that it cannot unpack it piece by piece
  bool operator==(const Message&) const = default;
};

/// A message that its receiver cannot unpack piece by piece.
struct TakenWhole {
  int statement = 0;
  std::int64_t sender = 0;  ///< a world rank
};

struct StatementSchedule {
  int statement = 0;
  std::string name;
  Knowledge knowledge;
  std::int64_t rank = 0, size = 1;                 ///< in the statement's group; size 0: the rank takes no part
  std::shared_ptr<const Members> members;          ///< world ranks by number in the group; null: the world
  std::vector<ValueForm> values;                   ///< by reduction
  std::vector<Message> sends, receives;            ///< ascending peer, without this rank itself
  std::vector<Message> local_send, local_receive;  ///< none or one: this rank to itself
  bool is_in_sender_order = false;  ///< some place is met from several ranks, and so arrival order is not good enough
  bool reads_what_it_writes = false;
  CollectiveForm collective;  ///< what its messages are together with those of all ranks, once these have agreed
  bool is_idle = false;       ///< no rank moves anything in it, as they have agreed where its pattern is fixed
  bool is_taken_whole_by_some = false;  ///< some message of it, of any rank, is_taken_whole
  bool compares_ends =
      false;  ///< the ends of a message may differ in what they expect: they compare when the plan is compiled

  std::int64_t world_rank_of(std::int64_t number) const {
    return members ? (*members)[static_cast<std::size_t>(number)] : number;
  }
};

struct Schedule {
  std::string plan;
  std::int64_t rank = 0, size = 1;  ///< in the world
  std::vector<StatementSchedule> statements;
  /// Statements (by number, ascending throughout) that run together: none touches what another of the phase writes.
  std::vector<std::vector<int>> phases;
  bool has_common_phases = false;  ///< all ranks have the same, as they have found out together
};

/// What a statement reads (varying names of its pattern included) and writes, by buffer, planes as such.
struct Touched {
  std::set<int> reads, writes;
};
Touched touched_by(const PlanModel& plan, const Statement& s);

/// A statement's schedule as far as this rank can work it out alone.
struct StatementDraft {
  BoundPlan bound;  ///< as the statement's group sees it
  Touched touched;
  StatementSchedule schedule;
  StatementPattern pattern;
  std::vector<Notice> notices;  ///< what peers must be told before they can finish theirs; this rank among them
};

/// Throws PlanError (bounds, ranks, counts) and Unsupported. Collective over nobody.
StatementDraft draft_statement(const BoundPlan& bound, std::size_t number, Knowledge knowledge);

/// What this rank sends to others, where it knows that alone (a push).
std::vector<Message> sent_messages(const StatementDraft& draft);

/// The whole schedule, from what peers have told this one (ascending, without itself; nothing but where
/// is_told(knowledge)). Throws PlanError (bounds, counts, double assignment).
StatementSchedule finish_statement(StatementDraft draft, std::vector<Notice> told);

/// The drafts of a plan's statements, of which `knowledge` is inferred. Those with varying patterns are left to every
/// run, or drafted from the contents that `bound` knows.
enum class Varying : std::uint8_t { left_out, included };
std::vector<StatementDraft> draft_schedule(const BoundPlan& bound, const std::vector<Knowledge>& knowledge,
                                           Varying varying = Varying::left_out);

/// What each world rank must be told, this one left out: the bytes of notices.
std::map<std::int64_t, Unfilled<std::byte>> letters_of(const std::vector<StatementDraft>& drafts);

/// The schedule of the rank of `bound`, from what other world ranks have told it by letters_of.
Schedule finish_schedule(const BoundPlan& bound, std::vector<StatementDraft> drafts,
                         const std::vector<std::pair<std::int64_t, std::span<const std::byte>>>& letters);

/// Both steps, for plans in which nobody is told anything.
Schedule build_schedule(const BoundPlan& bound);

/// The schedule as a JSON document for people and tests.
std::string to_json(const Schedule& schedule, const PlanModel& plan);

/// Appends the message as the piece's last track: elements of the given size one after the other from `offset_bytes`
/// on.
void add_message_track(Piece& piece, std::int64_t offset_bytes, std::int64_t element_bytes);

/// The message that a flow makes, whose pieces it takes; laid out alike at both ends. As a sender has it: all its
/// parts assign.
Message message_of(const Statement& s, Flow& flow);

/// Whether no two pieces of what is received have a place in common, as far as strides show.
bool are_apart(const Statement& s, std::span<const Message> messages);

/// What is received in one statement, in the order of application, checked for places that are assigned twice.
struct Applications {
  std::vector<Message> messages;  ///< by flow
  bool is_in_sender_order = false;
};
Applications order_applications(const BoundPlan& bound, const Statement& s, std::vector<Flow> receives,
                                const ReceivedEnvironments& environments);

}  // namespace kplan
