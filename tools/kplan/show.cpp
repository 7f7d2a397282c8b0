// kplan show: one stage of a plan's way from text to machine code, as that stage sees it.
#include <fmt/format.h>

#include "tools/kplan/commands.hpp"
#include "tools/kplan/dry_run.hpp"
#include "tools/kplan/output.hpp"
#include "tools/kplan/stages.hpp"

namespace kplan::cli {
namespace {

std::string knowledge_text(const PlanModel& plan) {
  std::string out;
  for (const Statement& s : plan.statements) {
    const Knowledge k = infer_knowledge(plan, s);
    out += fmt::format("{}: {}: {}{}{}\n", s.name, name_of(k.knowledge), k.reason,
                       k.is_varying ? "; varying: " + k.varying_reason : "", planes_text(plan, s));
  }
  return out;
}

std::string schedule_text(const Contents& contents, std::int64_t rank, std::int64_t size) {
  DryRun dry(contents, size);
  const DryRun::Visit visit = dry.visit(rank);
  return to_json(visit.schedule, *visit.bound.model) + "\n";
}

std::string stage_text(const Contents& contents, const Options& options) {
  const std::int64_t size = options.ranks.value_or(default_ranks), rank = chosen_rank(options, size);
  if (options.stage == "plan") return contents.plan().to_json() + "\n";
  if (options.stage == "knowledge") return knowledge_text(*model_as_run(contents.plan()));
  if (options.stage == "schedule") return schedule_text(contents, rank, size);
  if (options.stage == "kernel") return kernels_text(contents, rank, size);
  if (options.stage == "graph") return graph_text(contents, size);
  return code_text(contents, rank, size, options.stage == "asm");
}

}  // namespace

int show(const Options& options) {
  const Contents contents(Plan::parse_file(options.plan_file), options);
  std::string text = stage_text(contents, options);
  while (text.ends_with("\n\n")) text.pop_back();
  print("{}", text);
  return exit_done;
}

}  // namespace kplan::cli
