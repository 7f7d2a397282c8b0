// How it works: for each statement, knowledge, then the pattern, then messages: segments one after the other, pieces
// with a track through the message. What only one end of a message knows is told the other in between. Statements that
// touch nothing in common share a phase.
#include <fmt/format.h>

#include <algorithm>

#include "engine/analysis/expressions.hpp"
#include "engine/analysis/notice_bytes.hpp"
#include "engine/analysis/planes.hpp"
#include "engine/schedule/footprint.hpp"

namespace kplan {
namespace {

/// Whether some of the buffers may have memory in common; planes of one buffer may be the same.
bool may_meet(const PlanModel& plan, const std::set<int>& a, const std::set<int>& b) {
  return std::ranges::any_of(a, [&](int x) {
    return std::ranges::any_of(b, [&](int y) {
      return x == y || (plan.storage_of(x) == plan.storage_of(y) && !are_surely_apart(plan, x, y));
    });
  });
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
  track.bases = {offset_bytes};
  if (piece.list_length > 1) track.step = stride;
  piece.tracks.push_back(std::move(track));
}

Message message_of(const Statement& s, Flow& flow) {
  constexpr std::int64_t alignment_bytes = 16;
  Message out;
  out.peer = flow.peer;
  for (Segment& segment : flow.segments) {
    const auto element_bytes =
        static_cast<std::int64_t>(s.reductions[static_cast<std::size_t>(segment.reduction)].value_type.size_bytes);
    out.bytes = (out.bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    out.element_count += segment.element_count;
    out.payload_bytes += segment.element_count * element_bytes;
    out.digest = mixed(mixed(out.digest, static_cast<std::uint64_t>(segment.reduction)), segment.digest);
    for (Piece& piece : segment.pieces) {
      MessagePart part{segment.reduction, std::move(piece), true, true};
      add_message_track(part.piece, out.bytes, element_bytes);
      out.bytes += part.piece.element_count() * element_bytes;
      out.parts.push_back(std::move(part));
    }
  }
  return out;
}

Touched touched_by(const PlanModel& plan, const Statement& s) {
  Touched out;
  const auto pattern = [&](const ExprPtr& e) {
    if (!e) return;
    visit(*e, [&](const Expr& x) {
      if (x.kind == ExprKind::element && plan.buffers[static_cast<std::size_t>(x.id)].is_varying)
        out.reads.insert(x.id);
    });
  };
  for (const Clause& c : s.clauses) {
    for (const auto* e : {&c.expression, &c.set.first, &c.set.last, &c.set.step, &c.set.buffer}) pattern(*e);
    for (const auto& e : c.set.elements) pattern(e);
  }
  for (const Reduction& r : s.reductions) {
    // A reduction other than assign reads its place too, but only as it writes it.
    out.writes.insert(r.place->id);
    pattern(r.sender);
    pattern(r.receiver);
    for (const Subscript& sub : r.place->subscripts)
      for (const auto* part : {&sub.lo, &sub.hi, &sub.step}) pattern(*part);
    const ExprPtr value = with_bindings(r.value, s);
    visit(*value, [&](const Expr& e) {
      if (e.kind == ExprKind::element) out.reads.insert(e.id);
    });
  }
  return out;
}

/// Those in whose memory something is written, and read or written by something else too.
std::set<int> contested_buffers(const PlanModel& plan, const std::vector<StatementDraft>& drafts) {
  std::set<int> reads, writes, out;
  for (const StatementDraft& draft : drafts) {
    for (const int b : draft.touched.reads) reads.insert(plan.storage_of(b));
    for (const int b : draft.touched.writes)
      if (!writes.insert(plan.storage_of(b)).second) out.insert(plan.storage_of(b));
  }
  std::ranges::set_intersection(reads, writes, std::inserter(out, out.end()));
  return out;
}

StatementDraft draft_statement(const BoundPlan& bound, std::size_t number, Knowledge knowledge) {
  const PlanModel& plan = *bound.model;
  const Statement& s = plan.statements[number];
  StatementDraft out;
  out.schedule.statement = static_cast<int>(number);
  out.schedule.name = s.name;
  out.schedule.knowledge = std::move(knowledge);
  out.schedule.compares_ends = may_ends_differ(plan, s, out.schedule.knowledge);
  out.touched = touched_by(plan, s);
  out.schedule.reads_what_it_writes = may_meet(plan, out.touched.reads, out.touched.writes);
  if (!takes_part(bound, s)) {
    out.bound = bound;
    out.schedule.size = 0;
    return out;
  }
  out.bound = in_group(bound, s);
  out.schedule.rank = out.bound.state.rank;
  out.schedule.size = out.bound.state.size;
  out.schedule.members = out.bound.members;
  if (!is_told(out.schedule.knowledge)) {
    out.pattern = find_pattern(out.bound, s, out.schedule.knowledge);
    return out;
  }
  OwnHalf half = find_own_half(out.bound, s, out.schedule.knowledge);
  out.pattern = std::move(half.pattern);
  out.notices = std::move(half.notices);
  return out;
}

std::vector<Message> sent_messages(const StatementDraft& draft) {
  const Statement& s = draft.bound.model->statements[static_cast<std::size_t>(draft.schedule.statement)];
  std::vector<Message> out;
  for (Flow flow : draft.pattern.sends)
    if (flow.peer != draft.schedule.rank) out.push_back(message_of(s, flow));
  return out;
}

StatementSchedule finish_statement(StatementDraft draft, std::vector<Notice> told) {
  StatementSchedule out = std::move(draft.schedule);
  if (out.size == 0) return out;
  const BoundPlan& bound = draft.bound;
  const PlanModel& plan = *bound.model;
  const Statement& s = plan.statements[static_cast<std::size_t>(out.statement)];
  StatementPattern& pattern = draft.pattern;
  // The values as they are read where the where-list is evaluated; a pull's other values are read for others.
  if (is_told(out.knowledge)) {
    for (Notice& notice : draft.notices)
      if (notice.peer == out.rank) told.push_back(std::move(notice));
    std::ranges::sort(told, {}, &Notice::peer);
    add_told_half(bound, s, told, pattern);
  }
  const ReceivedEnvironments environments(bound, s, is_told(out.knowledge) && !s.is_pull ? &told : nullptr);
  Applications applications = order_applications(bound, s, std::move(pattern.receives), environments);
  out.is_in_sender_order = applications.is_in_sender_order;
  for (Message& m : applications.messages)
    (m.peer == out.rank ? out.local_receive : out.receives).push_back(std::move(m));
  for (Flow& flow : pattern.sends) (flow.peer == out.rank ? out.local_send : out.sends).push_back(message_of(s, flow));
  const std::int64_t sent = out.local_send.empty() ? 0 : out.local_send[0].element_count,
                     received = out.local_receive.empty() ? 0 : out.local_receive[0].element_count;
  const bool differs =
      !out.local_send.empty() && !out.local_receive.empty() && out.local_send[0].digest != out.local_receive[0].digest;
  if (sent != received || differs)
    throw error_in(plan, s, s.reductions[0].span, "KP-P059",
                   fmt::format("values of {} elements do not conform to places of {} elements, both on rank {}", sent,
                               received, bound.my_world_rank()));
  out.values = std::move(pattern.values);
  return out;
}

std::vector<StatementDraft> draft_schedule(const BoundPlan& bound, const std::vector<Knowledge>& knowledge,
                                           Varying varying) {
  std::vector<StatementDraft> out;
  for (std::size_t k = 0; k < bound.model->statements.size(); ++k) {
    const Statement& s = bound.model->statements[k];
    if (!knowledge[k].is_varying || varying == Varying::included) {
      out.push_back(draft_statement(bound, k, knowledge[k]));
      continue;
    }
    out.emplace_back();
    out.back().bound = bound;
    out.back().touched = touched_by(*bound.model, s);
    out.back().schedule.statement = static_cast<int>(k);
    out.back().schedule.name = s.name;
    out.back().schedule.knowledge = knowledge[k];
    out.back().schedule.size = 0;
  }
  return out;
}

std::map<std::int64_t, Unfilled<std::byte>> letters_of(const std::vector<StatementDraft>& drafts) {
  std::map<std::int64_t, Unfilled<std::byte>> out;
  for (const StatementDraft& draft : drafts)
    for (const Notice& notice : draft.notices)
      if (notice.peer != draft.schedule.rank)
        append_notice(draft.schedule.statement, notice, out[draft.bound.world_rank_of(notice.peer)]);
  return out;
}

Schedule finish_schedule(const BoundPlan& bound, std::vector<StatementDraft> drafts,
                         const std::vector<std::pair<std::int64_t, std::span<const std::byte>>>& letters) {
  const PlanModel& plan = *bound.model;
  Schedule out;
  out.plan = plan.name;
  out.rank = bound.world_rank;
  out.size = bound.world_size;
  std::vector<std::vector<Notice>> told(drafts.size());
  for (const auto& [from, letter] : letters)
    for (std::span<const std::byte> rest = letter; !rest.empty();) {
      NumberedNotice next = take_notice(rest, from);
      const auto number = static_cast<std::size_t>(next.statement);
      if (drafts[number].bound.members)
        next.notice.peer =
            std::ranges::find(*drafts[number].bound.members, from) - drafts[number].bound.members->begin();
      told[number].push_back(std::move(next.notice));
    }
  const std::set<int> contested = contested_buffers(plan, drafts);
  Footprint phase(plan);
  out.statements.reserve(drafts.size());  // footprints point into them
  for (std::size_t k = 0; k < drafts.size(); ++k) {
    const Touched touched = std::move(drafts[k].touched);
    out.statements.push_back(finish_statement(std::move(drafts[k]), std::move(told[k])));
    StatementSchedule& statement = out.statements.back();
    Footprint next(bound, statement, touched, contested);
    statement.reads_what_it_writes = next.reads_of(next);
    if (out.phases.empty() || next.reads_of(phase) || next.writes_of(phase) || phase.reads_of(next)) {
      out.phases.emplace_back();
      phase = Footprint(plan);
    }
    out.phases.back().push_back(static_cast<int>(k));
    phase.add(next);
  }
  return out;
}

Schedule build_schedule(const BoundPlan& bound) {
  return finish_schedule(bound, draft_schedule(bound, infer_knowledge(*bound.model)), {});
}

}  // namespace kplan
