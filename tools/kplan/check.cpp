// kplan check: reading a plan checks all that needs no values; with --ranks the schedules of some ranks are worked out
// too, which finds what depends on values: bounds, ranks, places that are assigned twice.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/kplan/commands.hpp"
#include "tools/kplan/dry_run.hpp"
#include "tools/kplan/output.hpp"

namespace kplan::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_checked_ranks = 32;
constexpr const char* without_ranks_note = "names and types are right; for bounds and double assignment give --ranks N";
constexpr const char* told_note =
    "of statements that only one end of a message knows, the other end was not looked at: there are too many ranks";

struct Checked {
  std::shared_ptr<const PlanModel> plan;  ///< as it is run
  std::vector<Knowledge> statements;
  std::vector<std::int64_t> ranks;  ///< whose schedules were worked out
  bool leaves_out_told = false;
};

Checked check_ranks(const Contents& contents, const Options& options) {
  Checked out;
  out.plan = model_as_run(contents.plan());
  out.statements = infer_knowledge(*out.plan);
  if (!options.ranks) return out;
  DryRun dry(contents, *options.ranks);
  out.ranks = options.rank ? std::vector{chosen_rank(options, *options.ranks)}
                           : ranks_to_visit(*options.ranks, most_checked_ranks);
  for (const std::int64_t rank : out.ranks) dry.visit(rank);
  dry.compare_ends();
  out.leaves_out_told = dry.leaves_out_told();
  return out;
}

void print_json(const PlanModel& plan, const Checked& checked, const Options& options) {
  Json out{{"plan", plan.name}, {"correct", true}, {"statements", Json::array()}};
  for (std::size_t k = 0; k < plan.statements.size(); ++k) {
    const Knowledge& knowledge = checked.statements[k];
    out["statements"].push_back({{"name", plan.statements[k].name},
                                 {"knowledge", name_of(knowledge.knowledge)},
                                 {"reason", knowledge.reason},
                                 {"found_at", found_at(knowledge)}});
  }
  if (options.ranks) {
    out["ranks"] = *options.ranks;
    out["checked_ranks"] = checked.ranks;
    if (checked.leaves_out_told) out["note"] = told_note;
  } else {
    out["note"] = without_ranks_note;
  }
  print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_text(const PlanModel& plan, const Checked& checked, const Options& options) {
  print("{}: {} statement{}, {}\n", plan.name, plan.statements.size(), plan.statements.size() == 1 ? "" : "s",
        options.ranks ? "no mistakes" : without_ranks_note);
  for (std::size_t k = 0; k < plan.statements.size(); ++k) {
    const Knowledge& knowledge = checked.statements[k];
    print("  {}: {} knowledge: {}{}{}\n", plan.statements[k].name, name_of(knowledge.knowledge), knowledge.reason,
          knowledge.is_varying ? "; found at every run: " + knowledge.varying_reason : "",
          planes_text(*checked.plan, checked.plan->statements[k]));
  }
  if (!options.ranks) return;
  const bool are_all = static_cast<std::int64_t>(checked.ranks.size()) == *options.ranks;
  if (are_all && *options.ranks > 1) print("checked all {} ranks\n", *options.ranks);
  else if (are_all) print("checked rank 0 of 1\n");
  else
    print("checked rank{} {} of {}; --rank R checks another\n", checked.ranks.size() == 1 ? "" : "s",
          listed(checked.ranks), *options.ranks);
  if (checked.leaves_out_told) print("{}\n", told_note);
}

}  // namespace

int check(const Options& options) {
  if (options.rank && !options.ranks) throw argument_error("KP-L006", "--rank needs --ranks: how many there are");
  const Contents contents(Plan::parse_file(options.plan_file), options);
  const Checked checked = check_ranks(contents, options);
  const PlanModel& plan = contents.plan().model();
  if (options.is_json) print_json(plan, checked, options);
  else print_text(plan, checked, options);
  return exit_done;
}

}  // namespace kplan::cli
