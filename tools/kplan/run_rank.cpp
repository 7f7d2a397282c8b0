// How it works: each step ends with an exchange of failures, so that all ranks take the next one or none does.
// Transport errors are the exception: after them nothing can be exchanged.
#include "tools/kplan/run_rank.hpp"

#include <fmt/format.h>

#include <functional>

namespace kplan::cli {
namespace {

/// Collective: does a step on every rank and agrees on how it went.
Failure attempt(transport::Transport& transport, const std::function<void()>& step) {
  std::exception_ptr thrown;
  try {
    step();
  } catch (const TransportError&) {
    throw;
  } catch (const std::exception&) {
    thrown = std::current_exception();
  }
  return exchange_failures(transport, failure_of(thrown));
}

/// Runs so often, also after a run that failed: the others count on it. Throws the first failure at the end.
void run_repeatedly(Executable& executable, std::int64_t repeat) {
  std::exception_ptr first;
  for (std::int64_t k = 0; k < repeat; ++k) {
    try {
      executable.run();
    } catch (const TransportError&) {
      throw;
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::string printed_lines(transport::Transport& transport, const PlanModel& plan, const RankMemory& memory,
                          const std::string& name) {
  const auto b = static_cast<std::size_t>(plan.find_buffer(name));
  const std::string mine = elements_text(memory.layouts[b], plan.buffers[b].type, memory.buffers[b].bytes());
  const auto parts = transport.allgather(mine, transport::Clock::now() + transport::timeout_from_environment());
  std::string out;
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    out += fmt::format("{} rank {}:{}\n", name, rank, parts[rank]);
  return out;
}

std::string count_text(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

Outcome run_rank(const std::shared_ptr<transport::Transport>& transport, const Contents& contents,
                 Expectation& expectation, const Options& options) {
  const PlanModel& plan = contents.plan().model();
  const int rank = transport->rank(), size = transport->size();
  Outcome out;
  Values values;
  if ((out.failure = attempt(*transport, [&] { values = contents.values(rank, size); })).is_failure()) return out;
  Engine engine(transport);
  std::optional<Executable> executable;
  if ((out.failure = attempt(*transport, [&] {
         executable.emplace(engine.compile(contents.plan(), values));
       })).is_failure())
    return out;
  std::optional<RankMemory> memory;
  out.failure = attempt(*transport, [&] {
    memory = contents.memory(rank, size);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b)
      if (!contents.is_given(b)) executable->bind_bytes(plan.buffers[b].name, memory->buffers[b].bytes());
  });
  if (out.failure.is_failure()) return out;
  if ((out.failure = attempt(*transport, [&] { run_repeatedly(*executable, options.repeat); })).is_failure())
    return out;
  for (const std::string& name : options.printed) out.output += printed_lines(*transport, plan, *memory, name);
  if (options.verify) {
    out.failure = attempt(*transport, [&] { expectation.compare(*memory); });
    if (out.failure.is_failure()) return out;
    out.output += fmt::format("verified: {}, {}, identical\n", count_text(size, "rank"),
                              count_text(static_cast<std::int64_t>(plan.buffers.size()), "buffer"));
  } else if (options.printed.empty()) {
    out.output += fmt::format("{}: {} over {}, {}, done\n", plan.name, count_text(size, "rank"), transport->name(),
                              count_text(options.repeat, "run"));
  }
  return out;
}

}  // namespace kplan::cli
