// How it works: every rank's schedule gives its outgoing edges; statements get colours where there are several.
#include <fmt/format.h>

#include <array>

#include "tools/kplan/dry_run.hpp"
#include "tools/kplan/stages.hpp"

namespace kplan::cli {
namespace {

constexpr std::int64_t most_drawn_ranks = 1024;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string graph_text(const Contents& contents, std::int64_t size) {
  if (size > most_drawn_ranks)
    throw argument_error(
        "KP-L008",
        fmt::format("a graph of {} ranks is more than anyone can read; at most {} are drawn", size, most_drawn_ranks));
  constexpr std::array colors{"black", "blue", "red", "darkgreen", "orange", "purple", "brown", "gray40"};
  const PlanModel& plan = contents.plan().model();
  DryRun dry(contents, size);
  std::string edges;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    const Schedule schedule = dry.visit(rank).schedule;
    for (std::size_t k = 0; k < schedule.statements.size(); ++k) {
      const StatementSchedule& s = schedule.statements[k];
      for (const Message& m : s.sends) {
        const std::string bytes = fmt::format("{} B", m.payload_bytes);
        const std::int64_t peer = s.world_rank_of(m.peer);
        if (schedule.statements.size() == 1) edges += fmt::format("  {} -> {} [label=\"{}\"];\n", rank, peer, bytes);
        else
          edges += fmt::format("  {} -> {} [label={}, color={}, fontcolor={}];\n", rank, peer,
                               quoted(plan.statements[k].name + ": " + bytes), colors[k % colors.size()],
                               colors[k % colors.size()]);
      }
    }
  }
  std::string out = fmt::format(
      "digraph {} {{\n  label={};\n  node [shape=circle];\n", quoted(plan.name),
      quoted(fmt::format("{} on {} rank{}: payload of each message", plan.name, size, size == 1 ? "" : "s")));
  for (const Statement& statement : plan.statements)
    out += fmt::format("  // {}: {}\n", statement.name, on_one_line(statement.text.text));
  for (std::int64_t rank = 0; rank < size; ++rank) out += fmt::format("  {};\n", rank);
  return out + edges + "}\n";
}

}  // namespace kplan::cli
