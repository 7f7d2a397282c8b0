// kplan run: starts the ranks (threads, or the processes that a launcher has started already), and lets one of them
// speak.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/environment.hpp"
#include "plans/diagnostic.hpp"
#include "tools/kplan/commands.hpp"
#include "tools/kplan/launcher.hpp"
#include "tools/kplan/output.hpp"
#include "tools/kplan/run_rank.hpp"
#include "tools/kplan/stages.hpp"

namespace kplan::cli {
namespace {

constexpr std::int64_t most_local_ranks = 1024;

/// The transport meant, checked against what the launcher says.
std::string chosen_transport(const Options& options, const Launch& launch) {
  const std::string usual = launch.is_rendezvous ? "ofi" : launch.is_launched() ? "mpi" : "local";
  const std::string out = options.transport.value_or(usual);
  const bool is_there = out == "ofi" ? transport::has_ofi() : out == "mpi" ? transport::has_mpi() : true;
  if (!is_there)
    throw Unsupported("KP-L010", fmt::format("the {} transport is not in this build; without a launcher, --transport "
                                             "local runs ranks as threads",
                                             out));
  if (out != "local" && !launch.is_launched() && options.ranks.value_or(1) > 1)
    throw argument_error("KP-L015", fmt::format("--transport {} --ranks {}: ranks are processes there; start them with "
                                                "mpirun -n {}{}",
                                                out, *options.ranks, *options.ranks,
                                                out == "ofi" ? ", or one by one with KPLAN_RENDEZVOUS=host:port, "
                                                               "KPLAN_RANK and KPLAN_SIZE"
                                                             : ""));
  if (out == "local" && launch.is_launched())
    throw argument_error("KP-L011",
                         "--transport local under a launcher would start all ranks in every process; leave the "
                         "launcher or the option away");
  if (out == "local" && options.ranks.value_or(default_ranks) > most_local_ranks)
    throw argument_error("KP-L012",
                         fmt::format("--ranks {}: at most {} ranks run as threads", *options.ranks, most_local_ranks));
  return out;
}

void check_ranks(const Options& options, std::int64_t launched) {
  if (options.ranks && *options.ranks != launched)
    throw argument_error("KP-L013", fmt::format("--ranks {}: the launcher has started {} process{}; leave --ranks away",
                                                *options.ranks, launched, launched == 1 ? "" : "es"));
}

Contents prepare(const Options& options) {
  Contents out(Plan::parse_file(options.plan_file), options);
  const PlanModel& plan = out.plan().model();
  for (const std::string& name : options.printed) {
    if (plan.find_buffer(name) >= 0) continue;
    std::vector<std::string> names;
    for (const Buffer& b : plan.buffers) names.push_back(b.name);
    throw argument_error("KP-L014", fmt::format("--print {}: plan {} has no such buffer{}", name, plan.name,
                                                suggestion_or_list(name, names)));
  }
  return out;
}

/// Throws where the output cannot be written, unless the run has failed: the others wait to be told of that.
void speak(const Outcome& outcome) try {
  write_output(outcome.output);
  flush_output();
} catch (const Error&) {
  if (!outcome.failure.is_failure()) throw;
}

int run_threads(const Options& options) {
  const Contents contents = prepare(options);
  const std::int64_t ranks = options.ranks.value_or(default_ranks);
  Expectation expectation(contents, ranks, options.repeat);
  Outcome outcome;
  transport::run_local(static_cast<int>(ranks), [&](std::shared_ptr<transport::Transport> transport) {
    Outcome mine = run_rank(transport, contents, expectation, options);
    if (transport->rank() == 0) outcome = std::move(mine);
  });
  speak(outcome);
  return outcome.failure.is_failure() ? report_together(outcome.failure) : exit_done;
}

/// After an error of the transport neither it nor MPI can be ended in order: others may wait in it for ever.
[[noreturn]] void give_up(int rank, const TransportError& e) {
  std::fprintf(stderr, "kplan: rank %d: %s\n", rank, e.what());
  std::fflush(stderr);
  std::_Exit(exit_failed);
}

int run_processes(const Options& options, const std::shared_ptr<transport::Transport>& world) {
  try {
    std::optional<Contents> contents;
    std::exception_ptr thrown;
    try {
      check_ranks(options, world->size());
      contents.emplace(prepare(options));
    } catch (const std::exception&) {
      thrown = std::current_exception();
    }
    const Failure unprepared = exchange_failures(*world, failure_of(thrown));
    if (unprepared.is_failure()) return report_over(*world, unprepared);
    Expectation expectation(*contents, world->size(), options.repeat);
    const Outcome outcome = run_rank(world, *contents, expectation, options);
    if (world->rank() == 0) speak(outcome);
    return outcome.failure.is_failure() ? report_over(*world, outcome.failure) : exit_done;
  } catch (const TransportError& e) {
    give_up(world->rank(), e);
  }
}

}  // namespace

int run(const Options& options) {
  const auto report = options.transport == "ofi" ? report_alone : report_together;
  std::string chosen;
  try {
    check_environment();
    chosen = chosen_transport(options, launch_from_environment());
  } catch (const Error&) {
    return report(failure_of(std::current_exception()));
  }
  if (chosen == "local") return run_threads(options);
  std::shared_ptr<transport::Transport> world;
  try {
    world = chosen == "mpi" ? transport::mpi_world() : transport::ofi_world();
  } catch (const TransportError& e) {
    std::fprintf(stderr, "kplan: %s\n", e.what());
    return exit_failed;
  } catch (const Error&) {
    return report(failure_of(std::current_exception()));
  }
  return run_processes(options, world);
}

}  // namespace kplan::cli
