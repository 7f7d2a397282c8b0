#include "engine/runtime/found_pattern.hpp"

namespace kplan {

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

[[gnu::hot]] void FoundPattern::stage(const RunContext& context) {
  for (IncomingMessage& m : receiving->incoming) context.pack(m.staging, m.staged.data());
}

[[gnu::hot]] void FoundPattern::apply(const RunContext& context, const ArrivedPatterns& arrived) {
  if (!has_part()) return;
  for (IncomingMessage& m : receiving->incoming) {
    const std::byte* message = m.is_local ? m.staged.data() : nullptr;
    if (const ArrivedPattern* from = m.is_local ? nullptr : arrived.from(m.peer)) message = from->payload.data();
    const bool is_direct = m.is_local && m.staging.empty();
    context.unpack(m.calls, message, /*has_values=*/is_direct);
  }
}

}  // namespace kplan
