// How it works: rank q's share are the elements [n q / size, n (q + 1) / size) of the message. In the first step each
// rank sends that part of its message to q, which unpacks it as it would unpack the whole. In the second, q sends what
// its places hold then, and the others assign it to theirs. The second step is a statement of its own, with the places
// as its values, in a phase of its own.
#include "engine/schedule/two_steps.hpp"

#include <algorithm>

#include "engine/analysis/expressions.hpp"

namespace kplan {
namespace {

constexpr std::int64_t fewest_elements_a_rank = 8;

/// Elements [first, end) of a message.
struct Share {
  std::int64_t first = 0, end = 0;
};

Share share_of(std::int64_t rank, std::int64_t size, std::int64_t elements) {
  return {elements * rank / size, elements * (rank + 1) / size};
}

/// Whether the parts lie one after the other, from the message's first byte to its last.
bool follow_each_other(const Message& m, std::int64_t element_bytes) {
  std::int64_t at = 0;
  for (const MessagePart& part : m.parts) {
    Piece walked{part.piece.list_length, part.piece.counts, {}};
    add_message_track(walked, at, element_bytes);
    if (walked.tracks[0] != part.piece.tracks.back()) return false;
    at += part.piece.element_count() * element_bytes;
  }
  return at == m.bytes;
}

/// Part of a message as a message.
Message part_of(const Message& m, Share share, std::int64_t element_bytes) {
  Message out;
  out.peer = m.peer;
  out.element_count = share.end - share.first;
  out.payload_bytes = out.bytes = out.element_count * element_bytes;
  out.digest = m.digest;
  std::int64_t at = 0, bytes = 0;
  for (const MessagePart& part : m.parts) {
    const std::int64_t count = part.piece.element_count(), first = std::clamp<std::int64_t>(share.first - at, 0, count),
                       end = std::clamp<std::int64_t>(share.end - at, 0, count);
    at += count;
    Piece rest = part.piece;
    rest.tracks.pop_back();
    for (Piece& piece : part_of(rest, first, end)) {
      add_message_track(piece, bytes, element_bytes);
      bytes += piece.element_count() * element_bytes;
      out.parts.push_back({part.reduction, std::move(piece), part.is_assign, part.is_injective});
    }
  }
  return out;
}

/// The places of a share as they travel in the second step, at either end.
Message places_of(const Message& received, std::int64_t peer, Share share, std::int64_t place_bytes) {
  Message out = part_of(received, share, place_bytes);
  out.peer = peer;
  for (MessagePart& part : out.parts) part.is_assign = true;
  return out;
}

/// The statement that gives what the places hold to the others.
Statement second_of(const Statement& s) {
  Statement out = s;
  Reduction& r = out.reductions[0];
  r.value = r.place;
  r.value_type = r.place_type;
  r.operator_name = "assign";
  r.is_assign = true;
  r.updates.clear();
  return out;
}

}  // namespace

Steps steps_of(const Statement& s, const StatementSchedule& schedule) {
  const Reduction& r = s.reductions[0];
  const Message& whole = schedule.local_receive[0];
  const auto value_bytes = static_cast<std::int64_t>(r.value_type.size_bytes),
             place_bytes = static_cast<std::int64_t>(r.place_type.size_bytes);
  const auto share = [&](std::int64_t rank) { return share_of(rank, schedule.size, whole.element_count); };
  Steps out{schedule, schedule};
  auto& [first, second] = out;
  second.values = {{r.place, {r.place.get()}, {}}};
  second.local_send.clear();
  second.local_receive.clear();
  first.is_taken_whole_by_some = second.is_taken_whole_by_some = false;  // of other messages
  second.is_in_sender_order = second.reads_what_it_writes = second.compares_ends = false;
  first.collective = {transport::CollectiveKind::alltoall};
  second.collective = {transport::CollectiveKind::allgather};
  for (Message& m : second.sends) m = places_of(whole, m.peer, share(first.rank), place_bytes);
  for (Message& m : second.receives) m = places_of(whole, m.peer, share(m.peer), place_bytes);

  for (Message& m : first.sends) m = part_of(m, share(m.peer), value_bytes);
  for (auto* messages : {&first.receives, &first.local_send, &first.local_receive})
    for (Message& m : *messages) m = part_of(m, share(first.rank), value_bytes);
  return out;
}

bool can_go_in_two_steps(const Statement& s, const StatementSchedule& schedule, const TwoStepLimits& limits) {
  const bool are_two = schedule.size == 2;
  if (limits.least_bytes == 0 || !s.is_fresh || s.reductions.size() != 1 || schedule.size < 2 ||
      (are_two && !limits.serves_two_ranks))
    return false;
  const Reduction& r = s.reductions[0];
  if (r.is_native || r.is_assign || r.place_type.is_record() || r.value_type.is_record() ||
      schedule.reads_what_it_writes || schedule.local_send.empty() || schedule.local_receive.empty())
    return false;
  const Message& own = schedule.local_receive[0];
  // What meets in one place must be in one share.
  if (!are_apart(s, schedule.local_receive)) return false;
  const std::size_t least_bytes = are_two ? 16 * limits.least_bytes : limits.least_bytes;
  if (std::cmp_less(own.bytes, least_bytes) || own.element_count < fewest_elements_a_rank * schedule.size) return false;
  const auto value_bytes = static_cast<std::int64_t>(r.value_type.size_bytes);
  // What a rank gives to its own places must be what it sends to all others.
  if (!std::ranges::all_of(schedule.sends, [&](const Message& m) { return m.parts == schedule.local_send[0].parts; }))
    return false;
  const auto is_whole = [&](const Message& m) {
    return m.element_count == own.element_count && follow_each_other(m, value_bytes);
  };
  const auto goes_to_same_places = [&](const Message& m) {
    return std::ranges::equal(m.parts, own.parts, [](const MessagePart& a, const MessagePart& b) {
      return a.is_injective && b.is_injective && a.piece == b.piece;
    });
  };
  return is_whole(schedule.local_send[0]) && std::ranges::all_of(schedule.sends, is_whole) && is_whole(own) &&
         std::ranges::all_of(schedule.receives, goes_to_same_places);
}

bool has_two_steps(const Schedule& schedule) {
  return std::ranges::any_of(schedule.statements, [](const auto& s) { return s.collective.is_in_two_steps; });
}

Divided divide(std::shared_ptr<const PlanModel> model, const Schedule& schedule) {
  const std::shared_ptr<PlanModel> copy = changeable_copy(model);
  copy->statements.clear();
  Divided out{copy, schedule};
  out.schedule.statements.clear();
  out.schedule.phases.clear();
  const auto add = [&](StatementSchedule s, Statement statement) {
    s.statement = static_cast<int>(copy->statements.size());
    out.schedule.phases.back().push_back(s.statement);
    copy->statements.push_back(std::move(statement));
    out.schedule.statements.push_back(std::move(s));
  };
  for (const std::vector<int>& phase : schedule.phases) {
    std::vector<std::pair<StatementSchedule, Statement>> seconds;
    out.schedule.phases.emplace_back();
    for (const int number : phase) {
      const StatementSchedule& s = schedule.statements[static_cast<std::size_t>(number)];
      const Statement& statement = model->statements[static_cast<std::size_t>(number)];
      if (!s.collective.is_in_two_steps) {
        add(s, statement);
        continue;
      }
      Steps steps = steps_of(statement, s);
      add(std::move(steps.first), statement);
      seconds.emplace_back(std::move(steps.second), second_of(statement));
    }
    if (seconds.empty()) continue;
    out.schedule.phases.emplace_back();
    for (auto& [s, statement] : seconds) add(std::move(s), std::move(statement));
  }
  return out;
}

}  // namespace kplan
