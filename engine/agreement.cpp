// How it works: each rank's part is a row of bytes, exchanged by the transport's all-gather. Every rank reads the parts
// in rank order and comes to the same verdict. What the ends of messages have found goes from each sender to its
// receiver only, which compares; what does not fit there is in the receiver's part.
#include "engine/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <string_view>

#include "engine/failure.hpp"
#include "engine/schedule/ends.hpp"
#include "plans/hash.hpp"
#include "transports/announcement.hpp"
#include "transports/bytes.hpp"

namespace kplan {
namespace {

using transport::append;
using transport::append_sized;
using transport::take;
using transport::take_sized;

/// What all ranks say, by rank.
struct Parts {
  std::vector<std::string> texts;
  std::vector<std::string_view> unread;  ///< of each, what is still to be taken
};

/// Collective: throws the first failure, this rank's own before others.
Parts exchange(transport::Transport& transport, std::string_view mine, const std::exception_ptr& failure,
               transport::Clock::time_point deadline) {
  std::string part;
  append_sized(part, encode_failure(failure));
  part += mine;
  Parts out{transport.allgather(part, deadline), {}};
  out.unread.assign(out.texts.begin(), out.texts.end());
  if (failure) std::rethrow_exception(failure);
  for (std::size_t rank = 0; rank < out.unread.size(); ++rank)
    if (const auto theirs = decode_failure(take_sized(out.unread[rank]), static_cast<std::int64_t>(rank)))
      std::rethrow_exception(theirs);
  return out;
}

/// Throws where one of a rank's facts is not what it is on rank 0.
void compare_facts(std::string_view of_first, std::string_view of_other, std::size_t rank) {
  for (bool is_plan = true; !of_first.empty() && !of_other.empty(); is_plan = false) {
    const std::string_view what = take_sized(of_first), a = take_sized(of_first);
    const std::string_view other_what = take_sized(of_other), b = take_sized(of_other);
    if (what == other_what && a == b) continue;
    if (is_plan)
      throw PlanError("KP-A001",
                      fmt::format("the ranks compile different plans: {} on rank 0, {} on rank {}", a, b, rank));
    throw PlanError("KP-A002", fmt::format("{} differs between ranks: {} on rank 0, {} on rank {}", what, a, b, rank));
  }
}

/// A message whose ends have not found the same.
struct Mismatch {
  int statement = 0;
  std::int64_t sender = 0, receiver = 0, sent = 0, expected = 0;
  auto operator<=>(const Mismatch&) const = default;
};

/// Collective: senders tell receivers of messages whose ends may differ. Returns the first that differs among those to
/// this rank. Cost: one letter to each receiver.
std::optional<Mismatch> compare_ends(transport::Transport& transport, const Schedule* schedule,
                                     transport::Clock::time_point deadline) {
  struct Found {
    std::int64_t element_count = 0;
    std::uint64_t digest = 0;
    bool operator==(const Found&) const = default;
  };
  struct Ends {
    Found sent, expected;  // nothing where an end does not know of the message
  };
  std::map<int, std::string> letters;
  std::map<std::pair<int, std::int64_t>, Ends> ends;  // by statement and sender
  if (schedule)
    for (const StatementSchedule& s : schedule->statements) {
      if (!s.compares_ends) continue;
      for (const Message& m : s.sends) {
        std::string& letter = letters[static_cast<int>(s.world_rank_of(m.peer))];
        append(letter, s.statement);
        append(letter, Found{m.element_count, m.digest});
      }
      for (const Message& m : s.receives)
        ends[{s.statement, s.world_rank_of(m.peer)}].expected = {m.element_count, m.digest};
    }
  std::vector<transport::Announcement> announcements;
  for (auto& [receiver, letter] : letters) announcements.push_back({receiver, std::move(letter)});
  for (const transport::Announcement& told : tell(transport, announcements, deadline, "comparing the ends of messages"))
    for (std::string_view in = told.bytes; !in.empty();) {
      const int statement = take<int>(in);
      ends[{statement, told.rank}].sent = take<Found>(in);
    }
  for (const auto& [message, e] : ends)
    if (e.sent != e.expected)
      return Mismatch{message.first, message.second, transport.rank(), e.sent.element_count, e.expected.element_count};
  return {};
}

/// Whether messages of some statement are to be compared when the plan is compiled. The same on every rank.
bool has_ends_to_compare(const PlanModel& plan, const std::vector<Knowledge>& knowledge) {
  for (std::size_t k = 0; k < knowledge.size(); ++k)
    if (!knowledge[k].is_varying && may_ends_differ(plan, plan.statements[k], knowledge[k])) return true;
  return false;
}

std::string bytes_of(const std::vector<std::vector<int>>& phases) {
  std::string out;
  for (const auto& phase : phases) {
    append(out, phase.size());
    for (const int statement : phase) append(out, statement);
  }
  return out;
}

/// Which statements are collective operations, from what each rank takes them for.
void note_forms(Schedule& schedule, Parts& parts) {
  for (StatementSchedule& s : schedule.statements) {
    std::vector<CollectiveCandidates> ranks;
    for (std::string_view& part : parts.unread) {
      ranks.push_back(take<CollectiveCandidates>(part));
      ranks.back().wants_two_steps = ranks.back().wants_two_steps && schedule.has_common_phases;
    }
    s.collective = agreed_form(ranks);
    s.is_idle = std::ranges::none_of(ranks, &CollectiveCandidates::moves_something);
  }
}

/// Which messages their receivers take whole: the rest of the parts.
void note_taken_whole(Schedule& schedule, Parts& parts) {
  for (std::size_t rank = 0; rank < parts.unread.size(); ++rank)
    while (!parts.unread[rank].empty()) {
      const auto whole = take<TakenWhole>(parts.unread[rank]);
      StatementSchedule& s = schedule.statements[static_cast<std::size_t>(whole.statement)];
      s.is_taken_whole_by_some = true;
      if (whole.sender != schedule.rank) continue;
      for (Message& m : s.sends)
        if (std::cmp_equal(s.world_rank_of(m.peer), rank)) m.is_taken_whole = true;
    }
}

}  // namespace

std::vector<Fact> uniform_facts(const BoundPlan& bound, const std::string& plan_digest) {
  const PlanModel& plan = *bound.model;
  std::vector<Fact> out{{"the plan", fmt::format("{} ({})", plan.name, plan_digest)}};
  for (std::size_t k = 0; k < plan.parameters.size(); ++k)
    if (plan.parameters[k].is_uniform)
      out.push_back(
          {fmt::format("uniform parameter `{}`", plan.parameters[k].name), to_text(bound.state.parameters[k])});
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (!plan.buffers[b].is_uniform || !bound.state.contents[b]) continue;
    const std::size_t size = plan.buffers[b].type.size_bytes;
    std::uint64_t hash = 0;
    each_run(bound.state.layouts[b], [&](std::int64_t first, std::int64_t count) {
      const auto begin = static_cast<std::size_t>(first) * size, bytes = static_cast<std::size_t>(count) * size;
      hash = mixed(hash, hash64({bound.state.contents[b] + begin, bytes}));
    });
    out.push_back({fmt::format("uniform buffer `{}`", plan.buffers[b].name),
                   fmt::format("contents with the hash {:016x}", hash)});
  }
  return out;
}

std::vector<std::vector<Place>> agree(transport::Transport& transport, const std::vector<Fact>& facts,
                                      const std::vector<Place>& places, const std::exception_ptr& failure,
                                      transport::Clock::time_point deadline) {
  std::string stated, mine;
  for (const Fact& f : facts) {
    append_sized(stated, f.what);
    append_sized(stated, f.value);
  }
  append_sized(mine, stated);
  for (const Place& p : places) append(mine, p);
  Parts parts = exchange(transport, mine, failure, deadline);
  std::vector<std::vector<Place>> out(parts.unread.size());
  std::string_view of_first;
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    std::string_view& part = parts.unread[rank];
    const std::string_view theirs = take_sized(part);
    if (rank == 0) of_first = theirs;
    if (theirs != of_first) compare_facts(of_first, theirs, rank);
    while (!part.empty()) out[rank].push_back(take<Place>(part));
  }
  return out;
}

void agree_on_messages(transport::Transport& transport, Schedule* schedule, const PlanModel& plan,
                       const std::vector<Knowledge>& knowledge,
                       const std::function<void(const StatementSchedule&, CollectiveCandidates&)>& choose,
                       const std::vector<TakenWhole>& whole, const std::exception_ptr& failure,
                       transport::Clock::time_point deadline) {
  std::optional<Mismatch> mismatch;
  if (has_ends_to_compare(plan, knowledge)) mismatch = compare_ends(transport, schedule, deadline);
  std::string mine;
  append(mine, mismatch.has_value());
  if (mismatch) append(mine, *mismatch);
  std::string phases;
  if (schedule) {
    phases = bytes_of(schedule->phases);
    append_sized(mine, phases);
    for (const StatementSchedule& s : schedule->statements) {
      CollectiveCandidates c = collective_candidates(s);
      if (c.kinds != 0) choose(s, c);
      c.moves_something = !s.sends.empty() || !s.receives.empty() || !s.local_send.empty();
      append(mine, c);
    }
    for (const TakenWhole& w : whole) append(mine, w);
  }
  Parts parts = exchange(transport, mine, failure, deadline);
  for (std::string_view& part : parts.unread) {
    if (!take<bool>(part)) continue;
    const auto theirs = take<Mismatch>(part);
    if (!mismatch || theirs < *mismatch) mismatch = theirs;
  }
  if (mismatch)
    throw ends_differ(plan, plan.statements[static_cast<std::size_t>(mismatch->statement)], mismatch->sender,
                      mismatch->receiver, mismatch->sent, mismatch->expected);
  schedule->has_common_phases = true;
  for (std::string_view& part : parts.unread)
    if (take_sized(part) != phases) schedule->has_common_phases = false;
  note_forms(*schedule, parts);
  note_taken_whole(*schedule, parts);
}

void agree_on_kernels(transport::Transport& transport, Schedule* schedule, const std::vector<TakenWhole>& whole,
                      const std::exception_ptr& failure, transport::Clock::time_point deadline) {
  std::string mine;
  for (const TakenWhole& w : whole) append(mine, w);
  Parts parts = exchange(transport, mine, failure, deadline);
  note_taken_whole(*schedule, parts);
}

}  // namespace kplan
