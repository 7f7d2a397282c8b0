#include "engine/runtime/program.hpp"

#include <algorithm>

#include "engine/lower/joined_ends.hpp"

namespace kplan {
namespace {

constexpr std::size_t most_literal_specs = 256;
constexpr int slots_of_pieces = 8;
constexpr std::size_t fewest_pieces = 16;                    ///< shorter messages stay in the caches anyway
constexpr std::uint32_t pieces_id = std::uint32_t{1} << 31;  ///< added to a statement's number

/// The whole message lies in one buffer as it travels.
std::optional<OutgoingMessage::InPlace> lies_in_place(const StatementSchedule& s, const Message& m,
                                                      const std::vector<KernelCall>& calls) {
  if (s.reads_what_it_writes || calls.size() != 1 || calls[0].spec >= 0 || calls[0].copy_bytes != m.bytes)
    return std::nullopt;
  return OutgoingMessage::InPlace{calls[0].streams[1].buffer, calls[0].streams[1].offset_bytes};
}

LoweredStatement lower_statement(const BoundPlan& bound, const StatementSchedule& s, SpecTable& specs,
                                 Literals literals) {
  Lowering lowering(bound, s, specs, literals);
  // Where the pattern varies, kernels should be few.
  const auto each_run = [&](const Transfer& t, const auto& f) {
    std::vector<Piece> runs;
    if (literals != Literals::innermost) runs = split_into_runs(t.piece);
    if (runs.empty()) return f(t);
    for (Piece& piece : runs) f({t.reduction, std::move(piece), t.is_assign, t.is_injective});
  };
  LoweredStatement out;
  for (const Message& m : s.sends) {
    LoweredStatement::Calls calls{m.peer, {}, {}};
    for (const Transfer& t : m.transfers) each_run(t, [&](const Transfer& part) { lowering.pack(part, calls.calls); });
    calls.in_place = lies_in_place(s, m, calls.calls);
    out.sends.push_back(std::move(calls));
  }
  for (const Message& m : s.receives) {
    LoweredStatement::Calls calls{m.peer, {}, {}};
    for (const Transfer& t : m.transfers)
      each_run(t, [&](const Transfer& part) { lowering.unpack(part, calls.calls); });
    out.receives.push_back(std::move(calls));
  }
  if (s.local_send.empty() || s.local_receive.empty()) return out;
  const Statement& statement = bound.model->statements[static_cast<std::size_t>(s.statement)];
  std::optional<JoinedEnds> ends;
  if (!s.reads_what_it_writes && literals != Literals::innermost &&
      std::ranges::none_of(statement.reductions, &Reduction::is_native))
    ends = join_ends(statement, s.local_send[0].transfers, s.local_receive[0].transfers);
  if (ends) {
    for (const auto& [from, to] : *ends) lowering.move(from, to, out.local);
  } else {
    for (const Transfer& t : s.local_send[0].transfers) lowering.pack(t, out.staging);
    for (const Transfer& t : s.local_receive[0].transfers) lowering.unpack(t, out.local);
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
  out.is_in_sender_order = s.is_in_sender_order;
  for (std::size_t m = 0; m < s.sends.size(); ++m)
    out.outgoing.push_back({s.sends[m].peer, s.world_rank_of(s.sends[m].peer),
                            static_cast<std::size_t>(s.sends[m].bytes), nullptr, ready(lowered.sends[m].calls),
                            lowered.sends[m].in_place, 0, false, nullptr, false, nullptr, false, 0, nullptr});
  for (std::size_t m = 0; m < s.receives.size(); ++m)
    out.incoming.push_back({s.receives[m].peer, s.world_rank_of(s.receives[m].peer),
                            static_cast<std::size_t>(s.receives[m].bytes), nullptr, ready(lowered.receives[m].calls),
                            false, false, 0, nullptr, false, nullptr, nullptr});
  if (!lowered.local.empty()) {
    out.staging = ready(lowered.staging);
    if (!out.staging.empty()) out.staged.resize(static_cast<std::size_t>(s.local_send[0].bytes));
    out.incoming.push_back({s.rank, s.world_rank_of(s.rank), 0, nullptr, ready(lowered.local), true, false, 0, nullptr,
                            false, nullptr, nullptr});
    std::ranges::sort(out.incoming, {}, &IncomingMessage::peer);
  }
  return out;
}

}  // namespace

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
  out.bound = std::move(bound);
  out.schedule = std::move(schedule);
  out.specs = table.specs();
  out.operators = std::move(operators);
  out.wait_for_code = wait;
  return out;
}

StatementProgram make_statement_program(const BoundPlan& bound, const StatementSchedule& schedule,
                                        const NativeOperators& operators) {
  SpecTable table;
  LoweredStatement lowered = lower_statement(bound, schedule, table, Literals::innermost);
  return ready_statement(bound, schedule, std::move(lowered), table,
                         jit::Compiler::instance().compile(table.specs(), jit::Wait::not_at_all), operators);
}

ReadyCall make_listed_update(const BoundPlan& bound, std::size_t statement, int reduction) {
  const Reduction& r = bound.model->statements[statement].reductions[static_cast<std::size_t>(reduction)];
  StatementSchedule schedule;
  schedule.statement = static_cast<int>(statement);
  schedule.rank = bound.state.rank;
  schedule.size = bound.state.size;
  const auto element_bytes = static_cast<std::int64_t>(r.place->element_bytes),
             value_bytes = static_cast<std::int64_t>(r.value_type.size_bytes);
  const auto field = static_cast<std::int64_t>(r.place->field_offset_bytes);
  const Piece piece{2, {}, {{{field, field + element_bytes}, {}}, {{0, value_bytes}, {}}}};
  SpecTable table;
  std::vector<KernelCall> calls;
  Lowering(bound, schedule, table, Literals::innermost)
      .unpack({reduction, piece, r.is_assign, /*is_injective=*/false}, calls);
  const std::vector<jit::Kernel> kernels = jit::Compiler::instance().compile(table.specs(), jit::Wait::not_at_all);
  return {std::move(calls.at(0)), kernels.at(0), &table.specs()[0]};
}

namespace {

transport::CollectiveSpec collective_spec(const StatementSchedule& s) {
  transport::CollectiveSpec out;
  out.kind = s.collective.kind;
  out.root = static_cast<int>(s.collective.root);
  out.outgoing_bytes.resize(static_cast<std::size_t>(s.size));
  out.incoming_bytes.resize(static_cast<std::size_t>(s.size));
  for (const Message& m : s.sends)
    out.outgoing_bytes[static_cast<std::size_t>(m.peer)] = static_cast<std::size_t>(m.bytes);
  for (const Message& m : s.receives)
    out.incoming_bytes[static_cast<std::size_t>(m.peer)] = static_cast<std::size_t>(m.bytes);
  return out;
}

}  // namespace

void open_channels(Program& program, const DirectLimits& limits, transport::Transport& transport,
                   transport::Clock::time_point deadline) {
  using transport::ChannelSpec;
  using transport::Direction;
  std::vector<ChannelSpec> specs;
  std::vector<std::unique_ptr<transport::Channel>*> targets;
  const auto add = [&](std::uint32_t id, std::size_t bytes, int slots, Direction direction, auto& end, int peer) {
    specs.push_back({peer, id, bytes, slots, direction, false});
    targets.push_back(&end.channel);
  };
  // Both ends of a message come to the same answer: they know its size, and are on the same path.
  const auto add_message = [&](std::uint32_t id, auto& m, Direction direction) {
    const auto peer = static_cast<int>(m.world_rank);
    add(id, m.bytes, transport.best_slots(peer, m.bytes), direction, m, peer);
    specs.back().is_placed = m.placement != nullptr;
    const std::size_t piece = transport.piece_bytes(peer);
    if (piece == 0 || m.bytes < fewest_pieces * piece) return;
    m.pieces = std::make_unique<typename std::decay_t<decltype(m.pieces)>::element_type>(m.bytes, piece);
    m.pieces->reserve(m.calls);
    add(id + pieces_id, piece_head_bytes + piece, slots_of_pieces, direction, *m.pieces, peer);
  };
  std::map<int, WrittenLines> written;  // by a phase's first statement
  const auto written_with = [&](int statement) -> const WrittenLines& {
    const auto& phase = *std::ranges::find_if(
        program.schedule.phases, [&](const std::vector<int>& p) { return std::ranges::find(p, statement) != p.end(); });
    const auto known = written.find(phase[0]);
    if (known != written.end()) return known->second;
    return written.emplace(phase[0], WrittenLines(program.bound, program.schedule, phase)).first->second;
  };
  const auto loan_of = [&](const StatementSchedule& s, const Message& m) -> std::unique_ptr<OutgoingLoan> {
    if (!transport.lends_memory(static_cast<int>(s.world_rank_of(m.peer)))) return nullptr;
    const Statement& statement = program.bound.model->statements[static_cast<std::size_t>(s.statement)];
    auto loan = OutgoingLoan::of(statement, s, m);
    if (!loan) return nullptr;
    const BetterLent when = better_lent(statement, m, written_with(s.statement), limits.lending);
    if (when == BetterLent::never) return nullptr;
    loan->restrict_to(when);
    return std::make_unique<OutgoingLoan>(std::move(*loan));
  };
  for (StatementProgram& s : program.statements) {
    const StatementSchedule& schedule = program.schedule.statements[static_cast<std::size_t>(s.statement)];
    if (schedule.collective.is_native) {
      s.collective = transport.open_collective(collective_spec(schedule), deadline);
      continue;
    }
    const auto id = static_cast<std::uint32_t>(s.statement);
    const Statement& statement = program.bound.model->statements[static_cast<std::size_t>(s.statement)];
    for (std::size_t k = 0; k < s.outgoing.size(); ++k) {
      OutgoingMessage& m = s.outgoing[k];
      if (transport.places_messages(static_cast<int>(m.world_rank)))
        m.placement = Placement::of_sent(statement, schedule, schedule.sends[k], limits.placing);
      add_message(id, m, Direction::send);
      m.loan = loan_of(schedule, schedule.sends[k]);
      if (m.placement || !transport.lends_regions(static_cast<int>(m.world_rank))) m.in_place.reset();
      m.may_be_taken_back = m.in_place && transport.lends_memory(static_cast<int>(m.world_rank));
      m.ends_when_sent =
          (m.in_place && !m.may_be_taken_back) || !transport.delivers_alone(static_cast<int>(m.world_rank));
      m.is_sent_in_pieces =
          m.pieces && OutgoingPieces::serves(m.calls) && !m.in_place && !schedule.reads_what_it_writes;
    }
    for (IncomingMessage& m : s.incoming) {
      if (m.is_local) continue;
      if (transport.places_messages(static_cast<int>(m.world_rank)))
        m.placement = Placement::of_received(
            statement, schedule, *std::ranges::find(schedule.receives, m.peer, &Message::peer), limits.placing);
      add_message(id, m, Direction::receive);
    }
  }
  auto channels = transport.open(specs, deadline);
  for (std::size_t k = 0; k < channels.size(); ++k) *targets[k] = std::move(channels[k]);
}

}  // namespace kplan
