// How it works: failures travel as small JSON texts through the transport's all-gather. A launcher kills all processes
// when one ends badly, so that the speaker must be done before any goes: a second all-gather sees to it.
#include "tools/kplan/agreed_failure.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/kplan/launcher.hpp"
#include "tools/kplan/options.hpp"

namespace kplan::cli {
namespace {

/// Also while it is the time-out that is wrong, and to be told of.
transport::Clock::time_point deadline() {
  try {
    return transport::Clock::now() + transport::timeout_from_environment();
  } catch (const PlanError&) {
    return transport::Clock::now() + std::chrono::seconds(60);
  }
}

void say(const Failure& failure) {
  std::fprintf(stderr, "kplan: %s\n", failure.text.c_str());
  std::fflush(stderr);
}

}  // namespace

int exit_code_of(const std::exception& e) {
  const bool is_users = dynamic_cast<const PlanError*>(&e) || dynamic_cast<const Unsupported*>(&e);
  return is_users ? exit_wrong : exit_failed;
}

std::string text_of(const std::exception& e) {
  return dynamic_cast<const std::bad_alloc*>(&e) ? "there is not enough memory [KP-L009]" : e.what();
}

Failure failure_of(const std::exception_ptr& thrown) {
  if (!thrown) return {};
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return {exit_code_of(e), e.code(), e.what()};
  } catch (const std::exception& e) {
    return {exit_code_of(e), "KP-L009", text_of(e)};
  }
}

Failure exchange_failures(transport::Transport& transport, const Failure& mine) {
  const std::string part = nlohmann::json{{"exit", mine.exit_code}, {"code", mine.code}, {"text", mine.text}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  Failure out;
  std::set<std::string> codes;
  const std::vector<std::string> parts = transport.allgather(part, deadline());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const nlohmann::json failure = nlohmann::json::parse(parts[rank]);
    const int exit_code = failure.at("exit");
    if (exit_code == 0) continue;
    const std::string code = failure.at("code");
    out.exit_code = std::max(out.exit_code, exit_code);
    if (!codes.insert(code).second) continue;
    if (out.code.empty()) out.code = code;
    const std::string text = failure.at("text");
    const bool names_rank = rank == 0 || text.find("rank ") != std::string::npos;
    if (!out.text.empty()) out.text += "\nkplan: ";
    out.text += names_rank ? text : fmt::format("rank {}: {}", rank, text);
  }
  return out;
}

int report_over(transport::Transport& transport, const Failure& agreed) {
  if (transport.rank() == 0) say(agreed);
  transport.allgather("", deadline());
  return agreed.exit_code;
}

int report_together(const Failure& mine) {
  const Launch launch = launch_from_environment();
  if (launch.is_launched() && !launch.is_rendezvous && transport::has_mpi()) {
    // What was wrong may be in these, and the message needs none.
    unsetenv("KPLAN_TIMEOUT");
    unsetenv("KPLAN_NODE");
    unsetenv("KPLAN_PIECE_BYTES");
    unsetenv("KPLAN_NON_TEMPORAL_BYTES");
    unsetenv("KPLAN_FAR_NS");
    const auto world = transport::mpi_world();
    return report_over(*world, exchange_failures(*world, mine));
  }
  return report_alone(mine);
}

int report_alone(const Failure& mine) {
  say(mine);
  return mine.exit_code;
}

}  // namespace kplan::cli
