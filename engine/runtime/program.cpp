#include "engine/runtime/program.hpp"

#include <algorithm>
#include <cstring>

namespace kplan {
namespace {

constexpr std::size_t most_literal_specs = 256;
constexpr int slots_per_channel = 2;

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
  LoweredStatement out;
  for (const Message& m : s.sends) {
    LoweredStatement::Calls calls{m.peer, {}, {}};
    for (const Transfer& t : m.transfers) calls.calls.push_back(lowering.pack(t));
    calls.in_place = lies_in_place(s, m, calls.calls);
    out.sends.push_back(std::move(calls));
  }
  for (const Message& m : s.receives) {
    LoweredStatement::Calls calls{m.peer, {}, {}};
    for (const Transfer& t : m.transfers) calls.calls.push_back(lowering.unpack(t));
    out.receives.push_back(std::move(calls));
  }
  if (s.local_send.empty() || s.local_receive.empty()) return out;
  const Statement& statement = bound.model->statements[static_cast<std::size_t>(s.statement)];
  std::vector<Transfer> from = s.local_send[0].transfers, to = s.local_receive[0].transfers;
  bool is_direct = !s.reads_what_it_writes && literals != Literals::innermost && from.size() == to.size() &&
                   std::ranges::none_of(statement.reductions, &Reduction::is_native);
  for (std::size_t k = 0; is_direct && k < from.size(); ++k)
    is_direct = from[k].reduction == to[k].reduction && match_nests(from[k].piece, to[k].piece);
  if (is_direct) {
    for (std::size_t k = 0; k < from.size(); ++k) out.local.push_back(lowering.move(from[k], to[k]));
  } else {
    for (const Transfer& t : s.local_send[0].transfers) out.staging.push_back(lowering.pack(t));
    for (const Transfer& t : s.local_receive[0].transfers) out.local.push_back(lowering.unpack(t));
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
                                 const std::vector<jit::Kernel>& kernels, const NativeOperators& operators) {
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
      jit::Kernel kernel = c.spec < 0 ? jit::Kernel() : kernels[static_cast<std::size_t>(c.spec)];
      out.emplace_back(std::move(c), std::move(kernel));
    }
    return out;
  };
  StatementProgram out;
  out.statement = s.statement;
  out.is_in_sender_order = s.is_in_sender_order;
  for (std::size_t m = 0; m < s.sends.size(); ++m)
    out.outgoing.push_back({s.sends[m].peer, s.world_rank_of(s.sends[m].peer),
                            static_cast<std::size_t>(s.sends[m].bytes), nullptr, ready(lowered.sends[m].calls),
                            lowered.sends[m].in_place});
  for (std::size_t m = 0; m < s.receives.size(); ++m)
    out.incoming.push_back({s.receives[m].peer, s.world_rank_of(s.receives[m].peer),
                            static_cast<std::size_t>(s.receives[m].bytes), nullptr, ready(lowered.receives[m].calls),
                            false, false});
  if (!lowered.local.empty()) {
    out.staging = ready(lowered.staging);
    if (!out.staging.empty()) out.staged.resize(static_cast<std::size_t>(s.local_send[0].bytes));
    out.incoming.push_back({s.rank, s.world_rank_of(s.rank), 0, nullptr, ready(lowered.local), true, false});
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

ReadyCall::ReadyCall(KernelCall call, jit::Kernel kernel) : call_(std::move(call)), kernel_(std::move(kernel)) {
  bases_.resize(call_.streams.size());
  for (const StreamUse& s : call_.streams) lists_.push_back(s.list.empty() ? nullptr : s.list.data());
}

ReadyCall::ReadyCall(KernelCall call, NativeReduction native) : call_(std::move(call)), native_(std::move(native)) {}

std::uint64_t ReadyCall::operator()(const std::vector<BoundMemory>& memory, std::byte* message) {
  if (native_) {
    (*native_)(memory[static_cast<std::size_t>(call_.native_buffer)].base, message);
    return 0;
  }
  for (std::size_t k = 0; k < bases_.size(); ++k) {
    const StreamUse& s = call_.streams[k];
    switch (s.kind) {
      case StreamKind::message: bases_[k] = message + s.offset_bytes; break;
      case StreamKind::buffer: bases_[k] = memory[static_cast<std::size_t>(s.buffer)].base + s.offset_bytes; break;
      // Kernels never write a table: it is always a source.
      case StreamKind::table: bases_[k] = reinterpret_cast<std::byte*>(call_.streams[k].table.data()); break;
    }
  }
  if (call_.spec < 0) {
    std::memcpy(bases_[0], bases_[1], static_cast<std::size_t>(call_.copy_bytes));
    return 0;
  }
  const jit::KernelArguments arguments{
      bases_.data(),       lists_.data(), call_.list_length, call_.extents.data(), call_.strides_bytes.data(),
      call_.scalars.data()};
  return kernel_(arguments);
}

void ReadyCall::set_varying(const std::vector<ScalarValue>& parameters) {
  for (const auto& [slot, parameter] : call_.varying_scalars) {
    const ScalarValue& v = parameters[static_cast<std::size_t>(parameter)];
    call_.scalars[static_cast<std::size_t>(2 * slot)] = v.bits[0];
    call_.scalars[static_cast<std::size_t>(2 * slot + 1)] = v.bits[1];
  }
}

Program make_program(BoundPlan bound, Schedule schedule, NativeOperators operators, jit::Wait wait) {
  SpecTable table;
  std::vector<LoweredStatement> lowered = lower(bound, schedule, table);
  const std::vector<jit::Kernel> kernels = jit::Compiler::instance().compile(table.specs(), wait);
  Program out;
  for (std::size_t k = 0; k < lowered.size(); ++k)
    out.statements.push_back(ready_statement(bound, schedule.statements[k], std::move(lowered[k]), kernels, operators));
  out.bound = std::move(bound);
  out.schedule = std::move(schedule);
  out.specs = table.specs();
  out.operators = std::move(operators);
  return out;
}

StatementProgram make_statement_program(const BoundPlan& bound, const StatementSchedule& schedule,
                                        const NativeOperators& operators) {
  SpecTable table;
  LoweredStatement lowered = lower_statement(bound, schedule, table, Literals::innermost);
  return ready_statement(bound, schedule, std::move(lowered),
                         jit::Compiler::instance().compile(table.specs(), jit::Wait::not_at_all), operators);
}

void open_channels(Program& program, transport::Transport& transport, transport::Clock::time_point deadline) {
  using transport::ChannelSpec;
  using transport::Direction;
  std::vector<ChannelSpec> specs;
  std::vector<std::unique_ptr<transport::Channel>*> targets;
  const auto add = [&](int statement, std::int64_t peer, std::size_t bytes, Direction direction,
                       std::unique_ptr<transport::Channel>& target) {
    specs.push_back(
        {static_cast<int>(peer), static_cast<std::uint32_t>(statement), bytes, slots_per_channel, direction});
    targets.push_back(&target);
  };
  for (StatementProgram& s : program.statements) {
    for (OutgoingMessage& m : s.outgoing) add(s.statement, m.world_rank, m.bytes, Direction::send, m.channel);
    for (IncomingMessage& m : s.incoming)
      if (!m.is_local) add(s.statement, m.world_rank, m.bytes, Direction::receive, m.channel);
  }
  auto channels = transport.open(specs, deadline);
  for (std::size_t k = 0; k < channels.size(); ++k) *targets[k] = std::move(channels[k]);
}

}  // namespace kplan
