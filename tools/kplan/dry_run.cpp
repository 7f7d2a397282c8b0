// How it works: each rank's values are bound, its statements drafted, and finished with what others have told it. What
// ranks tell each other when a plan is compiled (uniform values, both ends of a message) is compared here among those
// visited.
#include "tools/kplan/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "engine/analysis/planes.hpp"
#include "engine/schedule/ends.hpp"

namespace kplan::cli {

const char* found_at(const Knowledge& knowledge) { return knowledge.is_varying ? "run" : "compile"; }

namespace {

std::shared_ptr<const PlanModel> model_of(const Plan& plan) { return {std::shared_ptr<const void>(), &plan.model()}; }

/// The error, with the buffers whose contents may be why.
PlanError with_made_up(const PlanError& error, const std::vector<std::string>& buffers) {
  const std::string what = error.what(), code = " [" + error.code() + "]";
  const std::size_t end = std::min(what.find(code), what.size());
  std::string detail = what.substr(std::min(end + code.size() + 1, what.size()));
  detail += fmt::format("{}    the contents of `{}` are made up, since no data document gives them (--data FILE)",
                        detail.empty() ? "" : "\n", fmt::join(buffers, "`, `"));
  return {error.code(), what.substr(0, end), detail};
}

}  // namespace

std::shared_ptr<const PlanModel> model_as_run(const Plan& plan) { return with_planes(model_of(plan)); }

DryRun::DryRun(const Contents& contents, std::int64_t size)
    : contents_(contents), size_(size), knowledge_(infer_knowledge(*model_as_run(contents.plan()))) {
  for (const Knowledge& k : knowledge_) {
    tells_ = tells_ || is_told(k);
    varies_ = varies_ || k.is_varying;
  }
}

DryRun::RankValues DryRun::values_of(std::int64_t rank) {
  const std::shared_ptr<const PlanModel> model = model_of(contents_.plan());
  RankValues out{bind_values(model, contents_.values(rank, size_), rank, size_), {}};
  BoundPlan& bound = out.values.bound;
  if (varies_) {
    out.memory = contents_.memory(rank, size_);
    for (std::size_t b = 0; b < model->buffers.size(); ++b)
      if (model->buffers[b].is_varying) bound.state.contents[b] = out.memory->buffers[b].bytes().data();
  }
  return out;
}

const std::vector<std::vector<Place>>& DryRun::places(const BoundPlan& bound) {
  if (!places_.empty() || bound.model->groups.empty()) return places_;
  const PlanModel& plan = *bound.model;
  const bool are_replayable = std::ranges::all_of(plan.groups, [&](const Group& g) { return is_replayable(plan, g); });
  if (!are_replayable && size_ > most_told_ranks)
    throw Unsupported("KP-L009", fmt::format("plan {} has groups by private values: their members are looked for on at "
                                             "most {} ranks without a run, not on {}",
                                             plan.name, most_told_ranks, size_));
  if (size_ > most_placed_ranks)
    throw Unsupported("KP-L009",
                      fmt::format("plan {} has groups: who is in them is found by going through all ranks, which is "
                                  "done without a run for at most {} of them, not for {}; give fewer --ranks",
                                  plan.name, most_placed_ranks, size_));
  for (std::int64_t r = 0; r < size_; ++r)
    places_.push_back(are_replayable ? replayed_places(bound, r) : places_of(values_of(r).values.bound));
  return places_;
}

/// What all ranks tell each other.
void DryRun::tell() {
  if (!tells_ || is_told_ || size_ > most_told_ranks) return;
  is_told_ = true;
  for (std::int64_t r = 0; r < size_; ++r) {
    RankValues rank = values_of(r);
    form_groups(rank.values.bound, places(rank.values.bound));
    for (auto& [to, bytes] : letters_of(draft_schedule(rank.values.bound, knowledge_, Varying::included)))
      letters_[to].emplace_back(r, std::move(bytes));
  }
}

DryRun::Visit DryRun::visit(std::int64_t rank) try {
  kept_.push_back(values_of(rank));
  Visit out{kept_.back().values.bound, {}};
  compare_facts(out.bound, rank);
  visited_.push_back(rank);
  form_groups(out.bound, places(out.bound));
  tell();
  std::vector<std::pair<std::int64_t, std::span<const std::byte>>> told;
  for (const auto& [from, bytes] : letters_[rank]) told.emplace_back(from, bytes);
  out.schedule = finish_schedule(out.bound, draft_schedule(out.bound, knowledge_, Varying::included), told);
  for (const StatementSchedule& s : out.schedule.statements) {
    const Statement& statement = out.bound.model->statements[static_cast<std::size_t>(s.statement)];
    if (!s.sends.empty() || !s.receives.empty() || !s.local_send.empty())
      for (const Expr* plane : planes_of(*out.bound.model, statement)) first_of_plane(out.bound, statement, *plane);
    if (!s.compares_ends) continue;
    for (const Message& m : s.sends)
      ends_.push_back({s.statement, rank, s.world_rank_of(m.peer), m.element_count, true, m.digest});
    for (const Message& m : s.receives)
      ends_.push_back({s.statement, s.world_rank_of(m.peer), rank, m.element_count, false, m.digest});
  }
  return out;
} catch (const PlanError& error) {
  const std::vector<std::string> made_up = contents_.made_up();
  if (made_up.empty() || !error.code().starts_with("KP-P")) throw;
  throw with_made_up(error, made_up);
}

void DryRun::compare_facts(const BoundPlan& bound, std::int64_t rank) {
  std::vector<Fact> facts = uniform_facts(bound, contents_.plan().digest());
  if (visited_.empty()) facts_ = std::move(facts);
  else
    for (std::size_t k = 0; k < std::min(facts.size(), facts_.size()); ++k)
      if (facts[k].value != facts_[k].value)
        throw PlanError("KP-A002", fmt::format("plan {}: {} differs between ranks: {} on rank {}, {} on rank {}",
                                               contents_.plan().name(), facts[k].what, facts_[k].value, visited_[0],
                                               facts[k].value, rank));
}

void DryRun::compare_ends() const {
  struct Both {
    std::int64_t sent = 0, received = 0;
    std::uint64_t sent_digest = 0, received_digest = 0;
  };
  const std::set<std::int64_t> visited(visited_.begin(), visited_.end());
  std::map<std::tuple<int, std::int64_t, std::int64_t>, Both> messages;
  for (const End& e : ends_) {
    if (!visited.contains(e.sender) || !visited.contains(e.receiver)) continue;
    Both& both = messages[{e.statement, e.sender, e.receiver}];
    (e.is_send ? both.sent : both.received) = e.element_count;
    (e.is_send ? both.sent_digest : both.received_digest) = e.digest;
  }
  for (const auto& [key, both] : messages) {
    if (both.sent == both.received && both.sent_digest == both.received_digest) continue;
    const auto& [number, sender, receiver] = key;
    const PlanModel& plan = contents_.plan().model();
    throw ends_differ(plan, plan.statements[static_cast<std::size_t>(number)], sender, receiver, both.sent,
                      both.received);
  }
}

std::string planes_text(const PlanModel& plan, const Statement& s) {
  std::string out;
  for (const Expr* plane : planes_of(plan, s))
    out += fmt::format("{}`{}`", out.empty() ? "; every run looks where these are: " : ", ",
                       plan.buffers[static_cast<std::size_t>(plane->id)].name);
  return out;
}

std::vector<std::int64_t> ranks_to_visit(std::int64_t size, std::int64_t most) {
  std::set<std::int64_t> out;
  if (size > most) out = {0, 1, 2, size / 2, size - 2, size - 1};
  else
    for (std::int64_t r = 0; r < size; ++r) out.insert(r);
  return {out.begin(), out.end()};
}

std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

std::string listed(const std::vector<std::int64_t>& ranks) { return fmt::format("{}", fmt::join(ranks, ", ")); }

}  // namespace kplan::cli
