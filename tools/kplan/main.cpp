// Dispatches: the arguments name a command, the command does the work, and whatever is thrown becomes a message and an
// exit code.
#include <cstdio>
#include <exception>
#include <map>

#include "tools/kplan/agreed_failure.hpp"
#include "tools/kplan/commands.hpp"
#include "tools/kplan/output.hpp"

namespace kplan::cli {
namespace {

int dispatch(const Options& options) {
  static const std::map<std::string, int (*)(const Options&)> commands{
      {"check", check}, {"explain", explain}, {"show", show}, {"run", run}};
  const int exit_code = commands.at(options.command)(options);
  if (exit_code == exit_done) flush_output();
  return exit_code;
}

}  // namespace
}  // namespace kplan::cli

int main(int argc, char** argv) {
  using namespace kplan::cli;
  try {
    hold_standard_streams();
    const ParsedOptions parsed = parse_options(argc, argv);
    if (parsed.options) return dispatch(*parsed.options);
    if (parsed.exit_code != exit_done) return report_together({parsed.exit_code, "KP-L001", parsed.errors});
    write_output(parsed.output);
    flush_output();
    return parsed.exit_code;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kplan: %s\n", text_of(e).c_str());
    return exit_code_of(e);
  }
}
