// kplan explain: for each statement who knows its pattern and why, in which form it runs, and how much it sends,
// counted from the schedules of all ranks, or of a few where there are too many.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/runtime/known_patterns.hpp"
#include "engine/runtime/row_choice.hpp"
#include "engine/schedule/two_steps.hpp"
#include "tools/kplan/commands.hpp"
#include "tools/kplan/dry_run.hpp"
#include "tools/kplan/output.hpp"
#include "tools/kplan/timing.hpp"

namespace kplan::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_counted_ranks = 256, most_timed_ranks = 64;

struct Count {
  std::int64_t messages = 0, bytes = 0;
  bool moves_something = false;  ///< perhaps within a rank only

  Count& operator+=(const Count& other) {
    messages += other.messages;
    bytes += other.bytes;
    moves_something = moves_something || other.moves_something;
    return *this;
  }
};

Count sent(const StatementSchedule& s) {
  Count out;
  for (const Message& m : s.sends) out += {1, m.payload_bytes, true};
  out.moves_something = out.moves_something || !s.local_send.empty();
  return out;
}

/// What the visited ranks send in one statement.
struct Traffic {
  std::vector<Count> by_rank;
  Count total;
  std::set<int> moving;  ///< the reductions of which some rank sends something, if only to itself
};

void note_moving(const StatementSchedule& s, std::set<int>& moving) {
  for (const auto* messages : {&s.sends, &s.local_send})
    for (const Message& m : *messages)
      for (const MessagePart& part : m.parts) moving.insert(part.reduction);
}

struct Explanation {
  std::shared_ptr<const PlanModel> plan;  ///< as it is run
  std::vector<Knowledge> statements;
  std::vector<std::int64_t> ranks;
  std::vector<Traffic> traffic;
  std::vector<std::string> collectives;  ///< the operation that a statement is; empty: none
  bool are_all = true;

  /// What runs: messages found out by dynamic exchange once are sent directly afterwards.
  std::string form(std::size_t k) const {
    if (statements[k].is_varying) return "dynamic";
    if (are_all && traffic[k].total.messages == 0) return traffic[k].total.moves_something ? "local" : "nothing";
    return collectives[k].empty() ? "direct" : "collective: " + collectives[k];
  }
  /// The places to which nothing goes, on any rank, though the statement moves something.
  std::vector<std::string> idle_places(std::size_t k) const {
    std::vector<std::string> out;
    const Statement& s = plan->statements[k];
    for (std::size_t r = 0; are_all && !traffic[k].moving.empty() && r < s.reductions.size(); ++r)
      if (const Span at = s.reductions[r].place->span; !traffic[k].moving.contains(static_cast<int>(r)))
        out.push_back(s.text.text.substr(at.begin, at.end - at.begin));
    return out;
  }
  /// How runs of a varying statement find its pattern, which decides what they cost.
  std::string way(std::size_t k) const {
    const Statement& s = plan->statements[k];
    if (goes_by_rows(*plan, with_own_rank(s))) return "row by row";
    if (!hangs_on_parameters(*plan, s)) return "a schedule made in every run, in tens of microseconds";
    std::vector<std::string> values;
    const auto text_of = [&](const Expr& e) { return s.text.text.substr(e.span.begin, e.span.end - e.span.begin); };
    for (const VaryingExpression& e : varying_expressions(*plan, s))
      values.push_back(e.modulus ? fmt::format("`({}) % {}`", text_of(*e.value), text_of(*e.modulus))
                                 : fmt::format("`{}`", text_of(*e.value)));
    return fmt::format("{}a schedule for each value of {}, remembered",
                       goes_by_rows_when_new(*plan, with_own_rank(s)) ? "row by row at first, then " : "",
                       fmt::join(values, ", "));
  }
};

/// When and how the pattern is found.
std::string discovery_text(const Explanation& e, std::size_t statement) {
  const Knowledge& k = e.statements[statement];
  const char* told = k.knowledge == KnowledgeClass::sender     ? ", senders tell receivers by dynamic exchange"
                     : k.knowledge == KnowledgeClass::receiver ? ", receivers tell senders by dynamic exchange"
                                                               : ", by every rank from what it knows";
  const std::string planes = planes_text(*e.plan, e.plan->statements[statement]);
  if (k.is_varying) return fmt::format("at every run{}: {}{}", told, k.varying_reason, planes);
  return fmt::format("once, when the plan is compiled{}{}", told, planes);
}

Explanation count(const Contents& contents, std::int64_t size) {
  DryRun dry(contents, size);
  Explanation out;
  out.ranks = ranks_to_visit(size, most_counted_ranks);
  out.are_all = static_cast<std::int64_t>(out.ranks.size()) == size;
  const std::shared_ptr<const PlanModel> model = model_as_run(contents.plan());
  const PlanModel& plan = *model;
  out.plan = model;
  out.statements = infer_knowledge(plan);
  const std::size_t statements = out.statements.size();
  std::vector<std::vector<CollectiveCandidates>> candidates(statements);
  std::vector<std::vector<Count>> in_one_step(statements), in_two_steps(statements);  // by statement and rank
  out.traffic.resize(statements);
  const TwoStepLimits limits;
  for (const std::int64_t rank : out.ranks) {
    const Schedule schedule = dry.visit(rank).schedule;
    for (std::size_t k = 0; k < statements; ++k) {
      const StatementSchedule& s = schedule.statements[k];
      CollectiveCandidates& c = candidates[k].emplace_back(collective_candidates(s));
      c.wants_two_steps = can_go_in_two_steps(plan.statements[k], s, limits);
      in_one_step[k].push_back(sent(s));
      note_moving(s, out.traffic[k].moving);
      Count& both = in_two_steps[k].emplace_back();
      if (!c.wants_two_steps) continue;
      const Steps steps = steps_of(plan.statements[k], s);
      both += sent(steps.first);
      both += sent(steps.second);
    }
  }
  for (std::size_t k = 0; k < statements; ++k) {
    const CollectiveForm form = out.are_all ? agreed_form(candidates[k]) : CollectiveForm();
    out.collectives.push_back(form.kind == transport::CollectiveKind::none ? "" : to_text(form, plan.statements[k]));
    Traffic& traffic = out.traffic[k];
    traffic.by_rank = std::move((form.is_in_two_steps ? in_two_steps : in_one_step)[k]);
    for (const Count& c : traffic.by_rank) traffic.total += c;
  }
  dry.compare_ends();
  return out;
}

void print_json(const PlanModel& plan, const Explanation& e, std::int64_t size, const std::optional<Timing>& timing) {
  Json out{{"plan", plan.name}, {"ranks", size}};
  if (!e.are_all) out["sampled_ranks"] = e.ranks;
  out["statements"] = Json::array();
  for (std::size_t k = 0; k < plan.statements.size(); ++k) {
    const Traffic& t = e.traffic[k];
    Json item{{"name", plan.statements[k].name},
              {"statement", plan.statements[k].text.text},
              {"knowledge", name_of(e.statements[k].knowledge)},
              {"reason", e.statements[k].reason},
              {"found_at", found_at(e.statements[k])},
              {"discovery", discovery_text(e, k)},
              {"form", e.form(k)},
              {"messages", t.total.messages},
              {"bytes", t.total.bytes}};
    if (e.statements[k].is_varying) item["way"] = e.way(k);
    for (const std::string& place : e.idle_places(k)) item["nothing_goes_to"].push_back(place);
    if (!e.are_all)
      for (std::size_t r = 0; r < e.ranks.size(); ++r)
        item["sent_by_sampled_ranks"].push_back(
            {{"rank", e.ranks[r]}, {"messages", t.by_rank[r].messages}, {"bytes", t.by_rank[r].bytes}});
    out["statements"].push_back(std::move(item));
  }
  if (timing) out["timing"] = Json::parse(to_json(*timing));
  print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

/// Why no rank sends, for those who took another rank to decide.
std::string why_nothing(const Statement& s) {
  return s.is_pull ? "no rank meets an environment in which it is the receiver; where senders are to decide, leave "
                     "`\"direction\": \"pull\"` out"
                   : "no rank meets an environment in which it is the sender; where receivers are to ask for what they "
                     "need, say `\"direction\": \"pull\"`";
}

std::string sent_text(const Count& c) {
  return fmt::format("{} message{}, {} byte{}", c.messages, c.messages == 1 ? "" : "s", c.bytes,
                     c.bytes == 1 ? "" : "s");
}

void print_text(const PlanModel& plan, const Explanation& e, std::int64_t size, const std::optional<Timing>& timing) {
  print("{} on {} rank{}\n", plan.name, size, size == 1 ? "" : "s");
  for (std::size_t k = 0; k < plan.statements.size(); ++k) {
    const Knowledge& knowledge = e.statements[k];
    print("\n{}: {}\n", plan.statements[k].name, on_one_line(plan.statements[k].text.text));
    print("  knowledge  {}: {}\n", name_of(knowledge.knowledge), knowledge.reason);
    print("  pattern    found {}\n", discovery_text(e, k));
    print("  form       {}{}\n", e.form(k), e.statements[k].is_varying ? ": " + e.way(k) : "");
    if (e.form(k) == "nothing") print("             {}\n", why_nothing(plan.statements[k]));
    for (const std::string& place : e.idle_places(k))
      print("             nothing goes to `{}`: {}\n", place, why_nothing(plan.statements[k]));
    if (e.are_all) print("  sends      {}, all ranks together\n", sent_text(e.traffic[k].total));
    else
      for (std::size_t r = 0; r < e.ranks.size(); ++r)
        print("  {}  rank {}: {}\n", r == 0 ? "sends    " : "         ", e.ranks[r],
              sent_text(e.traffic[k].by_rank[r]));
  }
  if (!e.are_all) print("\nof {} ranks these were looked at: {}\n", size, listed(e.ranks));
  if (timing) print("{}", to_text(*timing));
}

}  // namespace

int explain(const Options& options) {
  const Contents contents(Plan::parse_file(options.plan_file), options);
  const Explanation explanation = count(contents, *options.ranks);
  if (options.has_timing && *options.ranks > most_timed_ranks)
    throw argument_error("KP-L012", fmt::format("--timing --ranks {}: at most {} ranks are timed, as threads",
                                                *options.ranks, most_timed_ranks));
  std::optional<Timing> timing;
  if (options.has_timing) timing = measure_timing(contents, *options.ranks);
  const PlanModel& plan = contents.plan().model();
  if (options.is_json) print_json(plan, explanation, *options.ranks, timing);
  else print_text(plan, explanation, *options.ranks, timing);
  return exit_done;
}

}  // namespace kplan::cli
