// How it works: each rank's part is a JSON text (small, self-describing), exchanged by the transport's all-gather.
// Every rank reads the parts in rank order and comes to the same verdict.
#include "engine/agreement.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "engine/failure.hpp"
#include "engine/schedule/ends.hpp"
#include "plans/hash.hpp"

namespace kplan {
namespace {

using Json = nlohmann::json;

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
  mine["messages"] = mine["forms"] = Json::array();
  if (schedule && !failure)
    for (const StatementSchedule& s : schedule->statements) {
      CollectiveCandidates c = collective_candidates(s);
      if (c.kinds != 0) choose(s, c);
      mine["forms"].push_back({c.kinds, c.sender, c.receiver, c.wants_native, c.wants_two_steps});
    }
  if (schedule && !failure)
    for (const StatementSchedule& s : schedule->statements) {
      if (!s.compares_ends) continue;
      for (const bool sends : {true, false})
        for (const Message& m : sends ? s.sends : s.receives)
          mine["messages"].push_back({s.statement, sends ? schedule->rank : s.world_rank_of(m.peer),
                                      sends ? s.world_rank_of(m.peer) : schedule->rank, sends, m.element_count,
                                      m.digest});
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
  struct Ends {
    std::int64_t sent = 0, received = 0;
    std::uint64_t sent_digest = 0, received_digest = 0;
  };
  std::map<std::tuple<int, std::int64_t, std::int64_t>, Ends> ends;
  for (const auto& part : parts)
    for (const Json& m : part->at("messages")) {
      Ends& e = ends[{m[0].get<int>(), m[1].get<std::int64_t>(), m[2].get<std::int64_t>()}];
      (m[3].get<bool>() ? e.sent : e.received) = m[4].get<std::int64_t>();
      (m[3].get<bool>() ? e.sent_digest : e.received_digest) = m[5].get<std::uint64_t>();
    }
  for (const auto& [key, e] : ends) {
    const auto& [number, sender, receiver] = key;
    if (e.sent == e.received && e.sent_digest == e.received_digest) continue;
    throw ends_differ(plan, plan.statements[static_cast<std::size_t>(number)], sender, receiver, e.sent, e.received);
  }
}

void agree_on_kernels(transport::Transport& transport, Schedule* schedule, const std::vector<TakenWhole>& whole,
                      const std::exception_ptr& failure, transport::Clock::time_point deadline) {
  const Parts parts = exchange(transport, part_of(whole, failure), deadline);
  throw_first_failure(parts, failure);
  if (schedule) note_taken_whole(*schedule, parts);
}

}  // namespace kplan
