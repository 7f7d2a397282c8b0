// Dispatches: the arguments name a command, the command does the work, and whatever is thrown becomes a message and an
// exit code.
#include <cstdio>
#include <exception>
#include <map>

#include "tools/kplan/agreed_failure.hpp"
#include "tools/kplan/commands.hpp"

namespace kplan::cli {
namespace {

int dispatch(const Options& options) {
  static const std::map<std::string, int (*)(const Options&)> commands{
      {"check", check}, {"explain", explain}, {"show", show}, {"run", run}};
  return commands.at(options.command)(options);
}

}  // namespace
}  // namespace kplan::cli

int main(int argc, char** argv) {
  using namespace kplan::cli;
  try {
    const ParsedOptions parsed = parse_options(argc, argv);
    if (parsed.options) return dispatch(*parsed.options);
    if (parsed.exit_code != exit_done) return report_together({parsed.exit_code, "KP-L001", parsed.errors});
    std::fputs(parsed.output.c_str(), stdout);
    return parsed.exit_code;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kplan: %s\n", text_of(e).c_str());
    return exit_code_of(e);
  }
}
