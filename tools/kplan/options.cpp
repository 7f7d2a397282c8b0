// How it works: CLI11 knows the commands and their options and does the parsing; what it has to say (help, mistakes)
// comes back as text, because under an MPI launcher one rank speaks for all.
#include "tools/kplan/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <sstream>

#include "plans/diagnostic.hpp"

namespace kplan::cli {
namespace {

constexpr std::int64_t most_ranks = std::numeric_limits<std::int32_t>::max();

/// CLI::Range says of what is no number that it is not in the range.
CLI::Validator integer_in(std::int64_t least, std::int64_t most) {
  return {[=](const std::string& text) -> std::string {
            std::int64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, value);
            if (rest != end || error == std::errc::invalid_argument)
              return fmt::format("`{}` is no whole number", text);
            if (error == std::errc() && value >= least && value <= most) return "";
            return fmt::format("{} is not in {} to {}", text, least, most);
          },
          ""};
}

void add_plan(CLI::App& command, Options& o) {
  command.add_option("PLAN", o.plan_file, "the plan, a JSON document")->required()->type_name("");
}

void add_ranks(CLI::App& command, Options& o, const std::string& text, bool is_required = false) {
  auto* option = command.add_option("--ranks", o.ranks, text)->check(integer_in(1, most_ranks))->type_name("N");
  if (is_required) option->required();
}

void add_rank(CLI::App& command, Options& o, const std::string& text) {
  command.add_option("--rank", o.rank, text)->check(integer_in(0, most_ranks))->type_name("R");
}

void add_values(CLI::App& command, Options& o) {
  command
      .add_option("--set", o.settings, "a parameter's value: an integer, a real, true or false, re,im; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--data", o.data_file,
                  "contents of buffers and private parameters, a JSON document (default: PLAN's name with .data.json, "
                  "if there is one)")
      ->type_name("FILE");
}

void add_json(CLI::App& command, Options& o) { command.add_flag("--json", o.is_json, "print one JSON document"); }

void add_commands(CLI::App& app, Options& o) {
  CLI::App& check = *app.add_subcommand("check", "say whether a plan is right, with --ranks for so many ranks too");
  add_plan(check, o);
  add_ranks(check, o, "work the messages out for so many ranks, without running");
  add_rank(check, o, "check this rank only (default: all of up to 32, else a few)");
  add_values(check, o);
  add_json(check, o);

  CLI::App& explain = *app.add_subcommand("explain", "say who knows each statement's pattern, and what it sends");
  add_plan(explain, o);
  add_ranks(explain, o, "so many ranks", true);
  add_values(explain, o);
  add_json(explain, o);
  explain.add_flag("--timing", o.has_timing, "compile it on so many threads, and say where the time goes");

  CLI::App& show = *app.add_subcommand("show", "print a plan as one stage of compilation sees it");
  add_plan(show, o);
  show.add_option("--stage", o.stage,
                  "plan: canonical JSON; knowledge: who knows the pattern; schedule: one rank's messages; kernel: its "
                  "loops; ir, asm: their code; graph: all messages, for Graphviz")
      ->required()
      ->check(CLI::IsMember({"plan", "knowledge", "schedule", "kernel", "ir", "asm", "graph"}).description(""))
      ->type_name("plan|knowledge|schedule|kernel|ir|asm|graph");
  add_ranks(show, o, "so many ranks (default: 4)");
  add_rank(show, o, "the rank to look at (default: 0)");
  add_values(show, o);

  CLI::App& run = *app.add_subcommand("run", "run a plan: ranks are threads, or under mpirun the processes");
  add_plan(run, o);
  add_ranks(run, o, "so many ranks (default: 4, or what the launcher says)");
  run.add_option("--transport", o.transport, "how bytes move (default: mpi under a launcher, else local)")
      ->check(CLI::IsMember({"local", "mpi", "ofi"}).description(""))
      ->type_name("local|mpi|ofi");
  add_values(run, o);
  run.add_option("--repeat", o.repeat, "run it so many times (default: 1)")
      ->check(integer_in(1, std::int64_t{1} << 40))
      ->type_name("K");
  run.add_option("--print", o.printed, "print a buffer of every rank afterwards; may be repeated")
      ->type_name("BUFFER")
      ->allow_extra_args(false);
  run.add_flag("--verify", o.verify, "compare all buffers with what the reference interpreter makes of the same data");
}

/// What CLI11 has found, in words; what it does not know, with what may have been meant.
std::string mistake_in(const CLI::App& app, const CLI::Error& e) {
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  const auto commands = app.get_subcommands();
  const auto unknown = std::ranges::find_if(rest, [](const std::string& word) { return word.starts_with("-"); });
  std::vector<std::string> names;
  if (commands.empty() && !rest.empty() && unknown == rest.end()) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    return fmt::format("there is no command `{}`{}", rest[0], suggestion(rest[0], names));
  }
  if (!commands.empty() && unknown != rest.end()) {
    for (const CLI::Option* option : commands[0]->get_options()) names.push_back(option->get_name());
    return fmt::format("{} has no option `{}`{}", commands[0]->get_name(), *unknown, suggestion(*unknown, names));
  }
  if (!rest.empty()) return fmt::format("{} is not expected here: there is a plan already", rest[0]);
  std::string out = e.what();
  if (out.size() > 1 && std::islower(static_cast<unsigned char>(out[1])) != 0)
    out[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(out[0])));
  return out;
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  ParsedOptions out;
  Options options;
  CLI::App app("Checks, explains and runs communication plans.", "kplan");
  app.set_version_flag("--version", "kplan " KPLAN_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* root, const CLI::Error& e) {
    return fmt::format("{}; kplan --help and kplan COMMAND --help say what there is [KP-L001]", mistake_in(*root, e));
  });
  add_commands(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream output, errors;
    const bool is_asked_for = app.exit(e, output, errors) == 0;
    out.exit_code = is_asked_for ? exit_done : exit_wrong;
    out.output = output.str();
    out.errors = errors.str();
    return out;
  }
  options.command = app.get_subcommands().at(0)->get_name();
  out.options = std::move(options);
  return out;
}

PlanError argument_error(const std::string& code, const std::string& message) { return PlanError(code, message); }

std::int64_t chosen_rank(const Options& options, std::int64_t ranks) {
  const std::int64_t rank = options.rank.value_or(0);
  if (rank >= ranks)
    throw argument_error("KP-L002",
                         fmt::format("--rank {}: there are the ranks 0 to {} (--ranks {})", rank, ranks - 1, ranks));
  return rank;
}

}  // namespace kplan::cli
