// How it works: each rank's part is a JSON text (small, self-describing), exchanged by the transport's all-gather.
// Every rank reads the parts in rank order and comes to the same verdict. What the ends of messages have found goes
// from each sender to its receiver only, which compares; what does not fit there is in the receiver's part.
#include <fmt/format.h>

#include <compare>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "engine/agreement.hpp"
#include "engine/failure.hpp"
#include "engine/schedule/ends.hpp"
#include "plans/hash.hpp"
#include "transports/announcement.hpp"
#include "transports/bytes.hpp"

namespace kplan {
namespace {

using Json = nlohmann::json;
using transport::append;
using transport::take;

/// By rank; ranks that say the same share one.
using Parts = std::vector<std::shared_ptr<const Json>>;

Parts exchange(transport::Transport& transport, const Json& mine, transport::Clock::time_point deadline) {
  const std::vector<std::string> texts =
      transport.allgather(mine.dump(-1, ' ', false, Json::error_handler_t::replace), deadline);
  Parts out;
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    out.push_back(rank > 0 && texts[rank] == texts[rank - 1] ? out.back()
                                                             : std::make_shared<const Json>(Json::parse(texts[rank])));
  return out;
}

void throw_first_failure(const Parts& parts, const std::exception_ptr& mine) {
  if (mine) std::rethrow_exception(mine);
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    if (const auto failure = decode_failure(parts[rank]->at("failure").get<std::string>(), static_cast<int>(rank)))
      std::rethrow_exception(failure);
}

/// Which statements are collective operations, from what each rank takes them for.
void note_forms(Schedule& schedule, const Parts& parts) {
  for (std::size_t k = 0; k < schedule.statements.size(); ++k) {
    std::vector<CollectiveCandidates> ranks;
    for (const auto& part : parts) {
      const Json& c = part->at("forms").at(k);
      ranks.push_back({c[0].get<std::uint32_t>(), c[1].get<std::int64_t>(), c[2].get<std::int64_t>(), c[3].get<bool>(),
                       schedule.has_common_phases && c[4].get<bool>()});
    }
    schedule.statements[k].collective = agreed_form(ranks);
  }
}

/// What a rank tells of its kernels.
Json part_of(const std::vector<TakenWhole>& whole, const std::exception_ptr& failure) {
  Json out{{"failure", encode_failure(failure)}};
  for (const TakenWhole& w : whole) out["whole"].push_back({w.statement, w.sender});
  return out;
}

/// Which messages their receivers take whole.
void note_taken_whole(Schedule& schedule, const Parts& parts) {
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (!parts[rank]->contains("whole")) continue;
    for (const Json& w : parts[rank]->at("whole")) {
      StatementSchedule& s = schedule.statements[w[0].get<std::size_t>()];
      s.is_taken_whole_by_some = true;
      if (w[1].get<std::int64_t>() != schedule.rank) continue;
      for (Message& m : s.sends)
        if (std::cmp_equal(s.world_rank_of(m.peer), rank)) m.is_taken_whole = true;
    }
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
bool has_ends_to_compare(const PlanModel& plan) {
  return std::ranges::any_of(plan.statements, [&](const Statement& s) {
    return may_ends_differ(plan, s) && !infer_knowledge(plan, s).is_varying;
  });
}

}  // namespace

std::vector<Fact> uniform_facts(const BoundPlan& bound, const std::string& plan_digest) {
  const PlanModel& plan = *bound.model;
  std::vector<Fact> out{{"the plan", fmt::format("{} ({})", plan.name, plan_digest)}};
  for (std::size_t k = 0; k < plan.parameters.size(); ++k)
    if (plan.parameters[k].is_uniform && !plan.parameters[k].is_varying)
      out.push_back(
          {fmt::format("uniform parameter `{}`", plan.parameters[k].name), to_text(bound.state.parameters[k])});
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (!plan.buffers[b].is_uniform || !bound.state.contents[b]) continue;
    const std::size_t bytes = static_cast<std::size_t>(bound.state.layouts[b].extent) * plan.buffers[b].type.size_bytes;
    out.push_back({fmt::format("uniform buffer `{}`", plan.buffers[b].name),
                   fmt::format("contents with the hash {:016x}", hash64({bound.state.contents[b], bytes}))});
  }
  return out;
}

std::vector<std::vector<Place>> agree(transport::Transport& transport, const std::vector<Fact>& facts,
                                      const std::vector<Place>& places, const std::exception_ptr& failure,
                                      transport::Clock::time_point deadline) {
  Json mine{{"failure", encode_failure(failure)}, {"facts", Json::array()}, {"places", Json::array()}};
  for (const Fact& f : facts) mine["facts"].push_back({f.what, f.value});
  for (const Place& p : places) mine["places"].push_back({p.color, p.key});
  const Parts parts = exchange(transport, mine, deadline);
  throw_first_failure(parts, failure);
  const Json& first = parts[0]->at("facts");
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    if (parts[rank] == parts[0]) continue;
    const Json& other = parts[rank]->at("facts");
    for (std::size_t k = 0; k < std::min(first.size(), other.size()); ++k) {
      if (first[k] == other[k]) continue;
      const std::string what = first[k][0], a = first[k][1], b = other[k][1];
      if (k == 0)
        throw PlanError("KP-A001",
                        fmt::format("the ranks compile different plans: {} on rank 0, {} on rank {}", a, b, rank));
      throw PlanError("KP-A002",
                      fmt::format("{} differs between ranks: {} on rank 0, {} on rank {}", what, a, b, rank));
    }
  }
  std::vector<std::vector<Place>> out;
  for (const auto& part : parts) {
    out.emplace_back();
    for (const Json& p : part->at("places")) out.back().push_back({p[0].get<std::int64_t>(), p[1].get<std::int64_t>()});
  }
  return out;
}

void agree_on_messages(transport::Transport& transport, Schedule* schedule, const PlanModel& plan,
                       const std::function<void(const StatementSchedule&, CollectiveCandidates&)>& choose,
                       const std::vector<TakenWhole>& whole, const std::exception_ptr& failure,
                       transport::Clock::time_point deadline) {
  Json mine = part_of(whole, failure);
  mine["forms"] = Json::array();
  if (schedule && !failure)
    for (const StatementSchedule& s : schedule->statements) {
      CollectiveCandidates c = collective_candidates(s);
      if (c.kinds != 0) choose(s, c);
      mine["forms"].push_back({c.kinds, c.sender, c.receiver, c.wants_native, c.wants_two_steps});
    }
  if (has_ends_to_compare(plan)) {
    if (const auto mismatch = compare_ends(transport, schedule, deadline))
      mine["mismatch"] = {mismatch->statement, mismatch->sender, mismatch->receiver, mismatch->sent,
                          mismatch->expected};
  }
  const bool has_phases = schedule && !failure && schedule->statements.size() > 1;
  if (has_phases) mine["phases"] = schedule->phases;
  const Parts parts = exchange(transport, mine, deadline);
  throw_first_failure(parts, failure);
  if (schedule) {
    // A plan of one statement has one phase.
    schedule->has_common_phases = !has_phases || std::ranges::all_of(parts, [&](const auto& part) {
      return part->at("phases") == mine["phases"];
    });
    note_forms(*schedule, parts);
    note_taken_whole(*schedule, parts);
  }
  std::optional<Mismatch> first;
  for (const auto& part : parts) {
    if (!part->contains("mismatch")) continue;
    const Json& m = part->at("mismatch");
    const Mismatch theirs{m[0].get<int>(), m[1].get<std::int64_t>(), m[2].get<std::int64_t>(), m[3].get<std::int64_t>(),
                          m[4].get<std::int64_t>()};
    if (!first || theirs < *first) first = theirs;
  }
  if (first)
    throw ends_differ(plan, plan.statements[static_cast<std::size_t>(first->statement)], first->sender, first->receiver,
                      first->sent, first->expected);
}

void agree_on_kernels(transport::Transport& transport, Schedule* schedule, const std::vector<TakenWhole>& whole,
                      const std::exception_ptr& failure, transport::Clock::time_point deadline) {
  const Parts parts = exchange(transport, part_of(whole, failure), deadline);
  throw_first_failure(parts, failure);
  if (schedule) note_taken_whole(*schedule, parts);
}

}  // namespace kplan
