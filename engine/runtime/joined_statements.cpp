// How it works: a message is its kernel calls, so that one of several is the calls of all, each with its part of the
// message further back. What must be applied in the order of senders is sorted by world ranks; statements on groups
// that number their ranks in another order stay alone. Between two ranks messages stay in the order of statements, so
// that both ends name and compare the same ones first; and what a statement receives stays in one program, which knows
// what must wait for what. Where ranks have other phases nothing is joined: what one of
// them does at once may hang on what another does later.
#include "engine/runtime/joined_statements.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "engine/runtime/ways_of_messages.hpp"

namespace kplan {
namespace {

constexpr std::size_t most_shared_bytes = 4096;  ///< of a message of several statements
constexpr std::size_t part_alignment = 16;

bool can_be_joined(const StatementSchedule& s) {
  return !s.knowledge.is_varying && !s.collective.is_native && (!s.members || std::ranges::is_sorted(*s.members));
}

/// The statements of a phase that become one: neighbours on one group. Two ranks with messages between them find the
/// same ones there, whatever other groups they are in.
std::vector<std::vector<int>> runs_of(const Program& program, const std::vector<int>& phase) {
  std::vector<std::vector<int>> out;
  int group = 0;         // of the last run
  bool goes_on = false;  // it may
  for (const int number : phase) {
    const auto n = static_cast<std::size_t>(number);
    const int its_group = program.bound.model->statements[n].group;
    const bool can_be = can_be_joined(program.schedule.statements[n]);
    if (can_be && !(goes_on && its_group == group)) out.emplace_back();
    if (can_be) out.back().push_back(number);
    group = its_group;
    goes_on = can_be;
  }
  return out;
}

/// The messages of such statements in one direction.
template <class M>
class SharedMessages {
 public:
  explicit SharedMessages(const transport::Transport& transport) : transport_(transport) {}

  /// Puts a message of the next statement into one of those before, to the same rank; or else it may carry others.
  void add(const StatementSchedule& s, M& message) {
    if (!is_short(message) || goes_alike(s, message, transport_)) return;
    M*& carrier = carriers_[message.world_rank];
    if (carrier && end_of(*carrier) + message.bytes <= most_shared_bytes) carry(*carrier, message);
    else carrier = &message;
  }

 private:
  bool is_short(const M& message) const {
    const auto peer = static_cast<int>(message.world_rank);
    return peer != transport_.rank() && message.bytes <= transport_.best_shared_bytes(peer) &&
           !is_long(message, transport_);
  }
  static std::size_t end_of(const M& message) {
    return (message.bytes + part_alignment - 1) / part_alignment * part_alignment;
  }
  static void carry(M& carrier, M& message) {
    const std::size_t offset = end_of(carrier);
    for (ReadyCall& call : message.calls) {
      call.move_in_message(static_cast<std::int64_t>(offset));
      carrier.calls.push_back(std::move(call));
    }
    message.calls.clear();  // it is gone
    carrier.bytes = offset + message.bytes;
    carrier.is_of_several = true;
    if constexpr (std::is_same_v<M, IncomingMessage>) {
      carrier.own.clear();
      carrier.is_in_sender_order = carrier.is_in_sender_order || message.is_in_sender_order;
    } else {
      carrier.in_place.reset();
    }
  }

  const transport::Transport& transport_;
  std::map<std::int64_t, M*> carriers_;  ///< by world rank, the last one
};

}  // namespace

void share_messages(Program& program, const transport::Transport& transport) {
  if (!program.schedule.has_common_phases) return;
  for (const std::vector<int>& phase : program.phases)
    for (const std::vector<int>& run : runs_of(program, phase)) {
      SharedMessages<OutgoingMessage> outgoing(transport);
      SharedMessages<IncomingMessage> incoming(transport);
      for (const int number : run) {
        const auto n = static_cast<std::size_t>(number);
        const StatementSchedule& s = program.schedule.statements[n];
        for (OutgoingMessage& m : program.statements[n].outgoing) outgoing.add(s, m);
        for (IncomingMessage& m : program.statements[n].incoming) incoming.add(s, m);
      }
    }
  const auto is_carried = [](const auto& m) { return m.calls.empty(); };
  for (StatementProgram& s : program.statements) {
    std::erase_if(s.outgoing, is_carried);
    std::erase_if(s.incoming, is_carried);
  }
}

void join_statements(Program& program) {
  if (!program.schedule.has_common_phases) return;
  for (std::vector<int>& phase : program.phases)
    for (const std::vector<int>& run : runs_of(program, phase)) {
      StatementProgram& all = program.statements[static_cast<std::size_t>(run.front())];
      for (const int number : std::span(run).subspan(1)) {
        StatementProgram& s = program.statements[static_cast<std::size_t>(number)];
        std::ranges::move(s.outgoing, std::back_inserter(all.outgoing));
        std::ranges::move(s.incoming, std::back_inserter(all.incoming));
        s.outgoing.clear();
        s.incoming.clear();
        std::erase(phase, number);
      }
      std::ranges::stable_sort(all.incoming, {}, &IncomingMessage::world_rank);
    }
}

}  // namespace kplan
