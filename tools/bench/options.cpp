// How it works: CLI11 does the parsing; what it has to say comes back as text, because one rank speaks for all.
#include "tools/bench/options.hpp"

#include <CLI/CLI.hpp>
#include <regex>
#include <sstream>

namespace kplan::bench {
namespace {

std::string wrong_expression(const std::string& text) {
  try {
    const std::regex expression(text);
    return "";
  } catch (const std::regex_error& e) {
    return "`" + text + "` is not a regular expression: " + e.what();
  }
}

CLI::App* add_command(CLI::App& app, Options& o, const std::string& name, const std::string& about) {
  CLI::App* command = app.add_subcommand(name, about);
  command->add_option("--json", o.json_file, "write the results as a JSON document")->type_name("FILE");
  command->add_option("--plot", o.plot_file, "draw the results, with gnuplot")->type_name("FILE.svg");
  command->add_option("--seconds", o.seconds, "the time to measure, shared out among the workloads")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("N");
  command->add_option("--only", o.only, "only workloads whose name has this in it")
      ->check(wrong_expression)
      ->type_name("REGEX");
  command->add_option("--methods", o.methods, "only methods whose name has this in it")
      ->check(wrong_expression)
      ->type_name("REGEX");
  command->add_flag("--list", o.is_list, "list the workloads and end");
  command
      ->add_option("--flush-mib", o.flush_mib,
                   "what a rank reads to empty the caches (default: by the last level's size)")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("N");
  command->add_flag("--mpi-defaults", o.has_mpi_defaults, "leave MPI's settings as they are");
  return command;
}

}  // namespace

bool Options::wants(const std::string& workload) const { return std::regex_search(workload, std::regex(only)); }
bool Options::wants_method(const std::string& method) const { return std::regex_search(method, std::regex(methods)); }

ParsedOptions parse_options(int argc, char** argv) {
  ParsedOptions out;
  Options options;
  CLI::App app("Measures kplan beside what else a program could use.", "kplan-bench");
  app.require_subcommand(1);
  add_command(app, options, "patterns", "exchanges between ranks: kplan and every alternative, under mpirun")
      ->add_flag("--rewrite", options.rewrites, "measure also runs before which each rank has written what it sends");
  add_command(app, options, "kernels", "packing, unpacking and reducing in one process, beside plain loops");
  add_command(app, options, "ladder", "latency and bandwidth by size for each path between two ranks");
  add_command(app, options, "setup",
              "what it takes to make an exchange ready: kplan and every alternative, under mpirun");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream output, errors;
    out.exit_code = app.exit(e, output, errors) == 0 ? 0 : 2;
    out.output = output.str();
    out.errors = errors.str();
    return out;
  }
  options.command = app.get_subcommands().at(0)->get_name();
  out.options = std::move(options);
  return out;
}

}  // namespace kplan::bench
