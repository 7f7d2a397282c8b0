// How it works: for each statement, knowledge, then the pattern, then messages: segments one after the other, pieces
// with a track through the message. Statements that touch nothing in common share a phase.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/analysis/expressions.hpp"
#include "engine/schedule/schedule.hpp"

namespace kplan {
namespace {

/// The buffers a statement reads and writes. A reduction other than assign reads its place too, but only as it writes
/// it.
struct Touched {
  std::set<int> reads, writes;
};

Touched touched_by(const Statement& s) {
  Touched out;
  for (const Reduction& r : s.reductions) {
    out.writes.insert(r.place->id);
    const ExprPtr value = with_bindings(r.value, s);
    visit(*value, [&](const Expr& e) {
      if (e.kind == ExprKind::element) out.reads.insert(e.id);
    });
  }
  return out;
}

bool meet(const std::set<int>& a, const std::set<int>& b) {
  return std::ranges::any_of(a, [&](int x) { return b.contains(x); });
}

void refuse(const PlanModel& plan, const Statement& s, const Knowledge& knowledge) {
  const auto unsupported = [&](const char* code, const std::string& what) {
    throw Unsupported(code, fmt::format("plan {}, statement {}: {}", plan.name, s.name, what));
  };
  if (s.group >= 0)
    unsupported("KP-U010", fmt::format("statements in a group other than world are not run yet; `{}` is one",
                                       plan.groups[static_cast<std::size_t>(s.group)].name));
  if (knowledge.is_varying)
    unsupported("KP-U011",
                fmt::format("patterns that vary from run to run are not run yet: {}", knowledge.varying_reason));
  if (knowledge.knowledge == KnowledgeClass::sender || knowledge.knowledge == KnowledgeClass::receiver)
    unsupported("KP-U012", fmt::format("only the {}s know its pattern, and dynamic exchange is not run yet: {}; if "
                                       "both ends do know it, claim \"knowledge\": \"corresponding\"",
                                       name_of(knowledge.knowledge), knowledge.reason));
  for (const Reduction& r : s.reductions)
    if (r.is_native)
      unsupported("KP-U013",
                  fmt::format("operators registered as C++ functions are not run yet; `{}` is one", r.operator_name));
}

/// The messages that the flows make at the sender.
Message sent_message(const Statement& s, const Flow& flow) {
  Message out;
  out.peer = flow.peer;
  for (const Segment& segment : flow.segments) {
    const auto element_bytes =
        static_cast<std::int64_t>(s.reductions[static_cast<std::size_t>(segment.reduction)].value_type.size_bytes);
    out.bytes = (out.bytes + 15) / 16 * 16;
    out.element_count += segment.element_count;
    out.payload_bytes += segment.element_count * element_bytes;
    out.digest = mixed(mixed(out.digest, static_cast<std::uint64_t>(segment.reduction)), segment.digest);
    for (const Piece& piece : segment.pieces) {
      Transfer t{segment.reduction, piece, true, true};
      add_message_track(t.piece, out.bytes, element_bytes);
      out.bytes += piece.element_count() * element_bytes;
      out.transfers.push_back(std::move(t));
    }
  }
  return out;
}

}  // namespace

void add_message_track(Piece& piece, std::int64_t offset_bytes, std::int64_t element_bytes) {
  Track track;
  track.strides.resize(piece.counts.size());
  std::int64_t stride = element_bytes;
  for (std::size_t d = piece.counts.size(); d-- > 0;) {
    track.strides[d] = stride;
    stride *= piece.counts[d];
  }
  for (std::int64_t o = 0; o < piece.list_length; ++o) track.bases.push_back(offset_bytes + o * stride);
  piece.tracks.push_back(std::move(track));
}

StatementSchedule build_statement_schedule(const BoundPlan& bound, std::size_t number) {
  const PlanModel& plan = *bound.model;
  const Statement& s = plan.statements[number];
  StatementSchedule out;
  out.statement = static_cast<int>(number);
  out.name = s.name;
  out.knowledge = infer_knowledge(plan, s);
  refuse(plan, s, out.knowledge);
  StatementPattern pattern = find_pattern(bound, s);
  out.compares_ends = may_ends_differ(plan, s);
  const Touched touched = touched_by(s);
  out.reads_what_it_writes = meet(touched.reads, touched.writes);
  Applications applications = order_applications(bound, s, pattern.receives);
  out.is_in_sender_order = applications.is_in_sender_order;
  for (Message& m : applications.messages)
    (m.peer == bound.state.rank ? out.local_receive : out.receives).push_back(std::move(m));
  for (const Flow& flow : pattern.sends)
    (flow.peer == bound.state.rank ? out.local_send : out.sends).push_back(sent_message(s, flow));
  const std::int64_t sent = out.local_send.empty() ? 0 : out.local_send[0].element_count,
                     received = out.local_receive.empty() ? 0 : out.local_receive[0].element_count;
  const bool differs =
      !out.local_send.empty() && !out.local_receive.empty() && out.local_send[0].digest != out.local_receive[0].digest;
  if (sent != received || differs)
    throw error_in(plan, s, s.reductions[0].span, "KP-P059",
                   fmt::format("values of {} elements do not conform to places of {} elements, both on rank {}", sent,
                               received, bound.state.rank));
  out.values = std::move(pattern.values);
  return out;
}

Schedule build_schedule(const BoundPlan& bound) {
  const PlanModel& plan = *bound.model;
  Schedule out;
  out.plan = plan.name;
  out.rank = bound.state.rank;
  out.size = bound.state.size;
  Touched phase;
  for (std::size_t k = 0; k < plan.statements.size(); ++k) {
    out.statements.push_back(build_statement_schedule(bound, k));
    const Touched next = touched_by(plan.statements[k]);
    const bool conflicts =
        meet(next.reads, phase.writes) || meet(next.writes, phase.writes) || meet(next.writes, phase.reads);
    if (out.phases.empty() || conflicts) {
      out.phases.emplace_back();
      phase = {};
    }
    out.phases.back().push_back(static_cast<int>(k));
    phase.reads.insert(next.reads.begin(), next.reads.end());
    phase.writes.insert(next.writes.begin(), next.writes.end());
  }
  return out;
}

}  // namespace kplan
