// kplan explain: for each statement who knows its pattern and why, in which form it runs, and how much it sends,
// counted from the schedules of all ranks, or of a few where there are too many.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/kplan/commands.hpp"
#include "tools/kplan/dry_run.hpp"

namespace kplan::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_counted_ranks = 256;

struct Count {
  std::int64_t messages = 0, bytes = 0;
};

/// What the visited ranks send in one statement.
struct Traffic {
  std::vector<Count> by_rank;
  Count total;
};

struct Explanation {
  std::vector<StatementNote> statements;
  std::vector<std::int64_t> ranks;
  std::vector<Traffic> traffic;
  bool are_all = true;

  bool is_run(std::size_t k) const { return statements[k].not_run.empty(); }
  std::string form(std::size_t k) const {
    const Knowledge& knowledge = statements[k].knowledge;
    if (knowledge.is_varying || knowledge.knowledge == KnowledgeClass::sender ||
        knowledge.knowledge == KnowledgeClass::receiver)
      return "dynamic";
    return is_run(k) && are_all && traffic[k].total.messages == 0 ? "local" : "direct";
  }
};

Explanation count(const Contents& contents, std::int64_t size) {
  DryRun dry(contents, size);
  Explanation out;
  out.ranks = ranks_to_visit(size, most_counted_ranks);
  out.are_all = static_cast<std::int64_t>(out.ranks.size()) == size;
  out.traffic.resize(dry.statements().size());
  for (const std::int64_t rank : out.ranks) {
    const auto schedules = dry.visit(rank);
    for (std::size_t k = 0; k < schedules.size(); ++k) {
      Count sent;
      if (schedules[k])
        for (const Message& m : schedules[k]->sends) {
          ++sent.messages;
          sent.bytes += m.payload_bytes;
        }
      out.traffic[k].by_rank.push_back(sent);
      out.traffic[k].total.messages += sent.messages;
      out.traffic[k].total.bytes += sent.bytes;
    }
  }
  dry.compare_ends();
  out.statements = dry.statements();
  return out;
}

void print_json(const PlanModel& plan, const Explanation& e, std::int64_t size) {
  Json out{{"plan", plan.name}, {"ranks", size}};
  if (!e.are_all) out["sampled_ranks"] = e.ranks;
  out["statements"] = Json::array();
  for (std::size_t k = 0; k < plan.statements.size(); ++k) {
    const Traffic& t = e.traffic[k];
    Json item{{"name", plan.statements[k].name},
              {"statement", plan.statements[k].text.text},
              {"knowledge", name_of(e.statements[k].knowledge.knowledge)},
              {"reason", e.statements[k].knowledge.reason},
              {"form", e.form(k)},
              {"messages", nullptr},
              {"bytes", nullptr}};
    if (e.is_run(k)) {
      item["messages"] = t.total.messages;
      item["bytes"] = t.total.bytes;
      if (!e.are_all)
        for (std::size_t r = 0; r < e.ranks.size(); ++r)
          item["sent_by_sampled_ranks"].push_back(
              {{"rank", e.ranks[r]}, {"messages", t.by_rank[r].messages}, {"bytes", t.by_rank[r].bytes}});
    } else {
      item["note"] = "this version does not run it: " + e.statements[k].not_run;
    }
    out["statements"].push_back(std::move(item));
  }
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string sent_text(const Count& c) {
  return fmt::format("{} message{}, {} byte{}", c.messages, c.messages == 1 ? "" : "s", c.bytes,
                     c.bytes == 1 ? "" : "s");
}

void print_text(const PlanModel& plan, const Explanation& e, std::int64_t size) {
  fmt::print("{} on {} rank{}\n", plan.name, size, size == 1 ? "" : "s");
  for (std::size_t k = 0; k < plan.statements.size(); ++k) {
    const StatementNote& note = e.statements[k];
    fmt::print("\n{}: {}\n", plan.statements[k].name, on_one_line(plan.statements[k].text.text));
    fmt::print("  knowledge  {}: {}\n", name_of(note.knowledge.knowledge), note.knowledge.reason);
    if (note.knowledge.is_varying) fmt::print("  varying    {}\n", note.knowledge.varying_reason);
    fmt::print("  form       {}\n", e.form(k));
    if (!e.is_run(k)) {
      fmt::print("  note       this version does not run it: {}\n", note.not_run);
      continue;
    }
    if (e.are_all) fmt::print("  sends      {}, all ranks together\n", sent_text(e.traffic[k].total));
    else
      for (std::size_t r = 0; r < e.ranks.size(); ++r)
        fmt::print("  {}  rank {}: {}\n", r == 0 ? "sends    " : "         ", e.ranks[r],
                   sent_text(e.traffic[k].by_rank[r]));
  }
  if (!e.are_all) fmt::print("\nof {} ranks these were looked at: {}\n", size, listed(e.ranks));
}

}  // namespace

int explain(const Options& options) {
  const Contents contents(Plan::parse_file(options.plan_file), options);
  const Explanation explanation = count(contents, *options.ranks);
  (options.is_json ? print_json : print_text)(contents.plan().model(), explanation, *options.ranks);
  return exit_done;
}

}  // namespace kplan::cli
