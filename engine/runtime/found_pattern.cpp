#include "engine/runtime/found_pattern.hpp"

#include <algorithm>

namespace kplan {
namespace {

/// A body of the least length may have so many blocks.
constexpr std::size_t blocks_of_least = 32;

PlacingLimits limits_of_bodies(std::size_t least_bytes) {
  return {.least_bytes = least_bytes, .least_block_bytes = least_bytes / blocks_of_least};
}

}  // namespace

[[gnu::hot]] void FoundPattern::make_sending(const RunContext& context, Reuse reuse) {
  StatementSchedule outgoing = schedule;
  outgoing.receives.clear();
  outgoing.local_send.clear();
  outgoing.local_receive.clear();
  sending = make_statement_program(*bound, outgoing, context.operators, reuse);
}

[[gnu::hot]] void FoundPattern::make_receiving(const RunContext& context, Reuse reuse) {
  StatementSchedule incoming = schedule;
  incoming.sends.clear();
  receiving = make_statement_program(*bound, incoming, context.operators, reuse);
}

void FoundPattern::place_sent(std::size_t least_bytes) {
  const Statement& s = bound->model->statements[static_cast<std::size_t>(schedule.statement)];
  for (OutgoingMessage& m : sending->outgoing)
    m.placement = Placement::of_sent(s, schedule, *std::ranges::find(schedule.sends, m.peer, &Message::peer),
                                     limits_of_bodies(least_bytes));
}

void FoundPattern::place_received(std::size_t least_bytes) {
  const Statement& s = bound->model->statements[static_cast<std::size_t>(schedule.statement)];
  for (IncomingMessage& m : receiving->incoming)
    if (!m.is_local)
      m.placement = Placement::of_received(s, schedule, *std::ranges::find(schedule.receives, m.peer, &Message::peer),
                                           limits_of_bodies(least_bytes));
}

[[gnu::hot]] void FoundPattern::stage(const RunContext& context) {
  for (IncomingMessage& m : receiving->incoming) context.pack(m.staging, m.staged.data());
}

[[gnu::hot]] void FoundPattern::apply(const RunContext& context, const ArrivedPatterns& arrived) {
  if (!has_part()) return;
  for (IncomingMessage& m : receiving->incoming) {
    const ArrivedPattern* const from = m.is_local ? nullptr : arrived.from(m.peer);
    if (from && from->has_body && m.placement) continue;  // it is there
    const std::byte* message = m.is_local ? m.staged.data() : nullptr;
    if (from) message = from->payload.data();
    const bool is_direct = m.is_local && m.staging.empty();
    context.unpack(m.calls, message, /*has_values=*/is_direct);
  }
}

}  // namespace kplan
