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
    const auto schedules = dry.visit(rank);
    for (std::size_t k = 0; k < schedules.size(); ++k) {
      if (!schedules[k]) continue;
      for (const Message& m : schedules[k]->sends) {
        const std::string bytes = fmt::format("{} B", m.payload_bytes);
        if (schedules.size() == 1) edges += fmt::format("  {} -> {} [label=\"{}\"];\n", rank, m.peer, bytes);
        else
          edges += fmt::format("  {} -> {} [label={}, color={}, fontcolor={}];\n", rank, m.peer,
                               quoted(plan.statements[k].name + ": " + bytes), colors[k % colors.size()],
                               colors[k % colors.size()]);
      }
    }
  }
  std::string out = fmt::format(
      "digraph {} {{\n  label={};\n  node [shape=circle];\n", quoted(plan.name),
      quoted(fmt::format("{} on {} rank{}: payload of each message", plan.name, size, size == 1 ? "" : "s")));
  for (std::size_t k = 0; k < plan.statements.size(); ++k) {
    const StatementNote& note = dry.statements()[k];
    out += note.not_run.empty()
               ? fmt::format("  // {}: {}\n", plan.statements[k].name, on_one_line(plan.statements[k].text.text))
               : fmt::format("  // {} is left out, this version does not run it: {}\n", plan.statements[k].name,
                             note.not_run);
  }
  for (std::int64_t rank = 0; rank < size; ++rank) out += fmt::format("  {};\n", rank);
  return out + edges + "}\n";
}

}  // namespace kplan::cli
