// How it works: each rank's values are bound once, then every statement is scheduled on its own.
// What ranks tell each other when a plan is compiled (uniform values, both ends of a message) is compared here among
// those visited.
#include "tools/kplan/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace kplan::cli {
namespace {

/// The reason alone: what stands around it (the plan, the statement, the code) is said where it is printed.
std::string bare_reason(const Unsupported& e, const PlanModel& plan, const Statement& s) {
  std::string out = e.what();
  out = out.substr(0, out.find('\n'));
  const std::string prefix = fmt::format("plan {}, statement {}: ", plan.name, s.name),
                    suffix = fmt::format(" [{}]", e.code());
  if (out.starts_with(prefix)) out.erase(0, prefix.size());
  if (out.ends_with(suffix)) out.resize(out.size() - suffix.size());
  return out;
}

}  // namespace

std::vector<StatementNote> notes_of(const PlanModel& plan) {
  std::vector<StatementNote> out;
  for (const Statement& s : plan.statements) out.push_back({infer_knowledge(plan, s), ""});
  return out;
}

DryRun::DryRun(const Contents& contents, std::int64_t size)
    : contents_(contents), size_(size), statements_(notes_of(contents.plan().model())) {}

std::vector<std::optional<StatementSchedule>> DryRun::visit(std::int64_t rank) {
  const std::shared_ptr<const PlanModel> model(std::shared_ptr<const void>(), &contents_.plan().model());
  BoundValues values = bind_values(model, contents_.values(rank, size_), rank, size_);
  compare_facts(values.bound);
  visited_.push_back(rank);
  std::vector<std::optional<StatementSchedule>> out(statements_.size());
  for (std::size_t k = 0; k < statements_.size(); ++k) {
    try {
      out[k] = build_statement_schedule(values.bound, k);
    } catch (const Unsupported& e) {
      if (statements_[k].not_run.empty()) statements_[k].not_run = bare_reason(e, *model, model->statements[k]);
      continue;
    }
    if (!out[k]->compares_ends) continue;
    for (const Message& m : out[k]->sends) ends_.push_back({k, rank, m.peer, m.element_count, true, m.digest});
    for (const Message& m : out[k]->receives) ends_.push_back({k, m.peer, rank, m.element_count, false, m.digest});
  }
  return out;
}

void DryRun::compare_facts(const BoundPlan& bound) {
  std::vector<Fact> facts = uniform_facts(bound, contents_.plan().digest());
  if (visited_.empty()) facts_ = std::move(facts);
  else
    for (std::size_t k = 0; k < std::min(facts.size(), facts_.size()); ++k)
      if (facts[k].value != facts_[k].value)
        throw PlanError("KP-A002", fmt::format("plan {}: {} differs between ranks: {} on rank {}, {} on rank {}",
                                               contents_.plan().name(), facts[k].what, facts_[k].value, visited_[0],
                                               facts[k].value, bound.state.rank));
}

void DryRun::compare_ends() const {
  struct Both {
    std::int64_t sent = 0, received = 0;
    std::uint64_t sent_digest = 0, received_digest = 0;
  };
  const std::set<std::int64_t> visited(visited_.begin(), visited_.end());
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, Both> messages;
  for (const End& e : ends_) {
    if (!visited.contains(e.sender) || !visited.contains(e.receiver)) continue;
    Both& both = messages[{e.statement, e.sender, e.receiver}];
    (e.is_send ? both.sent : both.received) = e.element_count;
    (e.is_send ? both.sent_digest : both.received_digest) = e.digest;
  }
  for (const auto& [key, both] : messages) {
    if (both.sent == both.received && both.sent_digest == both.received_digest) continue;
    const auto& [number, sender, receiver] = key;
    const Statement& s = contents_.plan().model().statements[number];
    const std::string what =
        both.sent != both.received
            ? fmt::format("rank {} sends {} elements to rank {}, which expects {}", sender, both.sent, receiver,
                          both.received)
            : fmt::format("rank {} and rank {} disagree about the where-bound values of the {} elements between them",
                          sender, receiver, both.sent);
    throw error_in(contents_.plan().model(), s, {}, "KP-A003",
                   fmt::format("statement {}: {}; {}", s.name, what,
                               s.claimed ? "the claim of corresponding knowledge is wrong"
                                         : "the sizes of its slices must match"));
  }
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
