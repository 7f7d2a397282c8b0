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

bool is_short(const auto& message, const transport::Transport& transport) {
  const auto peer = static_cast<int>(message.world_rank);
  return peer != transport.rank() && message.bytes <= transport.best_shared_bytes(peer) && !is_long(message, transport);
}

/// Where another one begins in a message that carries it.
std::size_t end_of(const auto& message) {
  return (message.bytes + part_alignment - 1) / part_alignment * part_alignment;
}

/// Puts a message, which is empty then, behind what another one holds.
void move_to(auto& carrier, auto& message) {
  const std::size_t offset = end_of(carrier);
  for (ReadyCall& call : message.calls) {
    call.move_in_message(static_cast<std::int64_t>(offset));
    carrier.calls.push_back(std::move(call));
  }
  message.calls.clear();
  carrier.bytes = offset + message.bytes;
}

void erase_moved(auto& messages) {
  std::erase_if(messages, [](const auto& m) { return m.calls.empty(); });
}

/// The messages of such statements in one direction.
template <class M>
class SharedMessages {
 public:
  explicit SharedMessages(const transport::Transport& transport) : transport_(transport) {}

  /// Puts a message of the next statement into one of those before, to the same rank; or else it may carry others.
  void add(const StatementSchedule& s, M& message) {
    if (!is_short(message, transport_) || goes_alike(s, message, transport_)) return;
    M*& carrier = carriers_[message.world_rank];
    if (carrier && end_of(*carrier) + message.bytes <= most_shared_bytes) carry(*carrier, message);
    else carrier = &message;
  }

 private:
  static void carry(M& carrier, M& message) {
    move_to(carrier, message);
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

/// Whether every rank gets a letter from every other in each of its runs.
bool tells_all(const Program& program, int number, const transport::Transport& transport) {
  const PlanModel& model = *program.bound.model;
  const Statement& s = model.statements[static_cast<std::size_t>(number)];
  return program.schedule.statements[static_cast<std::size_t>(number)].knowledge.is_varying &&
         transport.tells_faster() && is_told(infer_knowledge(model, s));
}

/// Whether the message is only of statements that assign: others can hang on the order in which messages are applied.
bool assigns(const Program& program, const auto& message) {
  return std::ranges::all_of(message.calls, [&](const ReadyCall& call) {
    const Statement& s = program.bound.model->statements[static_cast<std::size_t>(call.call().statement)];
    return std::ranges::all_of(s.reductions, &Reduction::is_assign);
  });
}

/// Moves the short ones of these messages to those that letters carry.
void enclose(const Program& program, const StatementSchedule& s, auto& messages, std::vector<EnclosedMessage>& letters,
             const transport::Transport& transport) {
  for (auto& m : messages) {
    const auto peer = static_cast<int>(m.world_rank);
    if (!is_short(m, transport) || goes_alike(s, m, transport) || !assigns(program, m)) continue;
    auto letter = std::ranges::lower_bound(letters, peer, {}, &EnclosedMessage::peer);
    const bool is_new = letter == letters.end() || letter->peer != peer;
    if ((is_new ? 0 : end_of(*letter)) + m.bytes > most_shared_bytes) continue;
    if (is_new) letter = letters.insert(letter, {peer, 0, {}});
    move_to(*letter, m);
  }
  erase_moved(messages);
}

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
  for (StatementProgram& s : program.statements) {
    erase_moved(s.outgoing);
    erase_moved(s.incoming);
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

void enclose_messages(Program& program, const transport::Transport& transport) {
  if (!program.schedule.has_common_phases) return;
  for (std::vector<int>& phase : program.phases) {
    const auto telling = std::ranges::find_if(phase, [&](int n) { return tells_all(program, n, transport); });
    if (telling == phase.end()) continue;
    Enclosed& enclosed = program.statements[static_cast<std::size_t>(*telling)].enclosed;
    std::erase_if(phase, [&](int number) {
      const auto n = static_cast<std::size_t>(number);
      const StatementSchedule& s = program.schedule.statements[n];
      if (!can_be_joined(s)) return false;
      StatementProgram& its = program.statements[n];
      enclose(program, s, its.outgoing, enclosed.outgoing, transport);
      enclose(program, s, its.incoming, enclosed.incoming, transport);
      return its.outgoing.empty() && its.incoming.empty();
    });
  }
}

}  // namespace kplan
