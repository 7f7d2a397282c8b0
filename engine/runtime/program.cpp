#include "engine/runtime/program.hpp"

#include <algorithm>

#include "engine/lower/joined_ends.hpp"

namespace kplan {
namespace {

constexpr std::size_t most_literal_specs = 256;

/// Where the whole message that is sent lies in one buffer as it travels.
std::optional<InPlace> lies_in_place(const Message& m, const std::vector<KernelCall>& calls) {
  if (calls.size() != 1 || calls[0].spec >= 0 || calls[0].copy_bytes != m.bytes) return std::nullopt;
  return InPlace{calls[0].streams[1].buffer, calls[0].streams[1].offset_bytes};
}

/// The message that meets the own share: they are applied one right after the other, so that one loop can do both.
struct Meeting {
  std::size_t message = 0;
  bool is_own_first = false;
};

std::optional<Meeting> meeting_of(const StatementSchedule& s) {
  if (s.receives.empty()) return std::nullopt;
  if (!s.is_in_sender_order) return Meeting{0, true};
  const auto next = std::ranges::upper_bound(s.receives, s.rank, {}, &Message::peer) - s.receives.begin();
  const auto k = static_cast<std::size_t>(next);
  return k < s.receives.size() ? Meeting{k, true} : Meeting{k - 1, false};
}

/// The kernels of a message that goes to the same places as the own share, for both. None where that cannot be.
std::vector<KernelCall> merged(const Statement& s, const JoinedEnds& own, const Message& message, bool is_own_first,
                               Lowering& lowering) {
  std::vector<KernelCall> out;
  for (const MetShares& met : meet_shares(s, own, message)) {
    auto call = lowering.merge(met, is_own_first);
    if (!call) return {};
    out.push_back(std::move(*call));
  }
  return out;
}

LoweredStatement lower_statement(const BoundPlan& bound, const StatementSchedule& s, SpecTable& specs,
                                 Literals literals) {
  Lowering lowering(bound, s, specs, literals);
  // Where the pattern varies, kernels should be few.
  const auto each_run = [&](const MessagePart& part, const auto& f) {
    std::vector<Piece> runs;
    if (literals != Literals::innermost) runs = split_into_runs(part.piece);
    if (runs.empty()) return f(part);
    for (Piece& piece : runs) f({part.reduction, std::move(piece), part.is_assign, part.is_injective});
  };
  LoweredStatement out;
  for (const Message& m : s.sends) {
    LoweredStatement::Calls calls{m.peer, {}, {}, {}};
    for (const MessagePart& part : m.parts)
      each_run(part, [&](const MessagePart& run) { lowering.pack(run, calls.calls); });
    if (!s.reads_what_it_writes) calls.in_place = lies_in_place(m, calls.calls);
    out.sends.push_back(std::move(calls));
  }
  const bool has_share = !s.local_send.empty() && !s.local_receive.empty();
  const Statement& statement = bound.model->statements[static_cast<std::size_t>(s.statement)];
  std::optional<JoinedEnds> ends;
  if (has_share && !s.reads_what_it_writes && literals != Literals::innermost &&
      std::ranges::none_of(statement.reductions, &Reduction::is_native))
    ends = join_ends(statement, s.local_send[0].parts, s.local_receive[0].parts);
  const std::optional<Meeting> meeting = ends ? meeting_of(s) : std::nullopt;
  bool is_merged = false;
  for (const Message& m : s.receives) {
    LoweredStatement::Calls calls{m.peer, {}, {}, {}};
    if (meeting && out.receives.size() == meeting->message) {
      calls.is_own_first = meeting->is_own_first;
      calls.calls = merged(statement, *ends, m, meeting->is_own_first, lowering);
      is_merged = !calls.calls.empty();
      if (is_merged)
        for (const auto& [from, to] : *ends) lowering.move(from, to, calls.own);
    }
    if (calls.calls.empty())
      for (const MessagePart& part : m.parts)
        each_run(part, [&](const MessagePart& run) { lowering.unpack(run, calls.calls); });
    out.receives.push_back(std::move(calls));
  }
  if (is_merged || !has_share) return out;
  if (ends) {
    for (const auto& [from, to] : *ends) lowering.move(from, to, out.local);
  } else {
    for (const MessagePart& part : s.local_send[0].parts) lowering.pack(part, out.staging);
    for (const MessagePart& part : s.local_receive[0].parts) lowering.unpack(part, out.local);
  }
  return out;
}

std::vector<LoweredStatement> lower_with(const BoundPlan& bound, const Schedule& schedule, SpecTable& specs,
                                         Literals literals) {
  std::vector<LoweredStatement> out;
  for (const StatementSchedule& s : schedule.statements)
    out.push_back(lower_statement(bound, s, specs, s.knowledge.is_varying ? Literals::innermost : literals));
  return out;
}

StatementProgram ready_statement(const BoundPlan& bound, const StatementSchedule& s, LoweredStatement lowered,
                                 const SpecTable& specs, const std::vector<jit::Kernel>& kernels,
                                 const NativeOperators& operators) {
  const Statement& statement = bound.model->statements[static_cast<std::size_t>(s.statement)];
  const auto ready = [&](std::vector<KernelCall>& calls) {
    std::vector<ReadyCall> out;
    for (KernelCall& c : calls) {
      if (c.is_native) {
        const Reduction& r = statement.reductions[static_cast<std::size_t>(c.reduction)];
        NativeReduction native(r, find_operator(operators, *bound.model, statement, r), c.native);
        out.emplace_back(std::move(c), std::move(native));
        continue;
      }
      const auto k = static_cast<std::size_t>(c.spec);
      if (c.spec < 0) out.emplace_back(std::move(c), jit::Kernel(), nullptr);
      else out.emplace_back(std::move(c), kernels[k], &specs.specs()[k]);
    }
    return out;
  };
  StatementProgram out;
  out.statement = s.statement;
  const auto add = [&](auto& messages, const Message& message, std::vector<ReadyCall> calls) -> auto& {
    auto& m = messages.emplace_back();
    m.statement = s.statement;
    m.peer = message.peer;
    m.world_rank = s.world_rank_of(message.peer);
    m.bytes = static_cast<std::size_t>(message.bytes);
    m.calls = std::move(calls);
    return m;
  };
  for (std::size_t k = 0; k < s.sends.size(); ++k)
    add(out.outgoing, s.sends[k], ready(lowered.sends[k].calls)).in_place = lowered.sends[k].in_place;
  for (std::size_t k = 0; k < s.receives.size(); ++k) {
    IncomingMessage& m = add(out.incoming, s.receives[k], ready(lowered.receives[k].calls));
    m.own = ready(lowered.receives[k].own);
    m.is_own_first = lowered.receives[k].is_own_first;
    m.is_in_sender_order = s.is_in_sender_order;
  }
  if (!lowered.local.empty()) {
    IncomingMessage& own = out.incoming.emplace_back();
    own.statement = s.statement;
    own.peer = s.rank;
    own.world_rank = s.world_rank_of(s.rank);
    own.calls = ready(lowered.local);
    own.is_local = true;
    own.is_in_sender_order = s.is_in_sender_order;
    own.staging = ready(lowered.staging);
    if (!own.staging.empty()) own.staged.resize(static_cast<std::size_t>(s.local_send[0].bytes));
    std::ranges::sort(out.incoming, {}, &IncomingMessage::peer);
  }
  return out;
}

}  // namespace

[[gnu::hot]] void StatementProgram::set_varying(const std::vector<ScalarValue>& parameters) {
  const auto renew = [&](std::vector<ReadyCall>& calls) {
    for (ReadyCall& c : calls) c.set_varying(parameters);
  };
  for (OutgoingMessage& m : outgoing) renew(m.calls);
  for (IncomingMessage& m : incoming) {
    renew(m.calls);
    renew(m.own);
    renew(m.staging);
    if (m.loan) m.loan->set_varying(parameters);
  }
  for (EnclosedMessage& m : enclosed.outgoing) renew(m.calls);
  for (EnclosedMessage& m : enclosed.incoming) renew(m.calls);
}

std::vector<LoweredStatement> lower(const BoundPlan& bound, const Schedule& schedule, SpecTable& specs) {
  std::vector<LoweredStatement> out = lower_with(bound, schedule, specs, Literals::shapes);
  if (specs.specs().size() <= most_literal_specs) return out;
  specs = SpecTable();
  return lower_with(bound, schedule, specs, Literals::extents);
}

Program make_program(BoundPlan bound, Schedule schedule, NativeOperators operators, jit::Wait wait) {
  SpecTable table;
  std::vector<LoweredStatement> lowered = lower(bound, schedule, table);
  const std::vector<jit::Kernel> kernels = jit::Compiler::instance().compile(table.specs(), wait);
  Program out;
  for (std::size_t k = 0; k < lowered.size(); ++k)
    out.statements.push_back(
        ready_statement(bound, schedule.statements[k], std::move(lowered[k]), table, kernels, operators));
  for (std::size_t k = 0; k < lowered.size(); ++k) {
    const auto number = static_cast<std::size_t>(schedule.statements[k].statement);
    const Statement& statement = bound.model->statements[number];
    if (schedule.statements[k].knowledge.is_varying && takes_part(bound, statement))
      out.statements[k].rows = RowStatement::of(in_group(bound, statement), number, wait);
  }
  out.bound = std::move(bound);
  out.schedule = std::move(schedule);
  out.specs = table.specs();
  out.phases = out.schedule.phases;
  out.operators = std::move(operators);
  out.wait_for_code = wait;
  return out;
}

StatementProgram make_statement_program(const BoundPlan& bound, const StatementSchedule& schedule,
                                        const NativeOperators& operators, Reuse reuse) {
  SpecTable table;
  LoweredStatement lowered =
      lower_statement(bound, schedule, table, reuse == Reuse::kernels ? Literals::innermost : Literals::extents);
  return ready_statement(bound, schedule, std::move(lowered), table,
                         jit::Compiler::instance().compile(table.specs(), jit::Wait::not_at_all), operators);
}

}  // namespace kplan
