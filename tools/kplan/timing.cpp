#include "tools/kplan/timing.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "jit/compiler.hpp"
#include "kplan/transport.hpp"

namespace kplan::cli {
namespace {

using Json = nlohmann::ordered_json;

double sum(const CompileTimes& times) {
  double out = 0;
  for (const auto& [step, us] : times) out += us;
  return out;
}

std::string steps_text(const char* title, const CompileTimes& times) {
  std::string out = fmt::format("{:<44}{:>12.1f} us\n", title, sum(times));
  if (times.size() > 1)
    for (const auto& [step, us] : times) out += fmt::format("  {:<42}{:>12.1f}\n", step, us);
  return out;
}

Json steps_json(const CompileTimes& times) {
  Json out{{"total_us", sum(times)}};
  for (const auto& [step, us] : times) out["steps_us"][step] = us;
  return out;
}

}  // namespace

Timing measure_timing(const Contents& contents, std::int64_t ranks) {
  Timing out;
  const PlanModel& plan = contents.plan().model();
  transport::run_local(static_cast<int>(ranks), [&](std::shared_ptr<transport::Transport> transport) {
    const std::int64_t rank = transport->rank();
    const Values values = contents.values(rank, ranks);
    RankMemory memory = contents.memory(rank, ranks);
    {
      Engine engine(transport);
      const CompileTimes first = engine.compile(contents.plan(), values, Code::before_return).compile_times();
      const CompileTimes again = engine.compile(contents.plan(), values).compile_times();
      if (rank == 0) out.waiting = first, out.again = again;
    }
    transport->allgather("", transport::Clock::now() + transport::timeout_from_environment());  // all code is gone
    if (rank == 0) out.kernels = jit::Compiler::instance().statistics();
    Engine engine(transport);
    const auto begin = std::chrono::steady_clock::now();
    Executable executable = engine.compile(contents.plan(), values);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b)
      if (!contents.is_given(b)) executable.bind_bytes(plan.buffers[b].name, memory.buffers[b].bytes());
    executable.run();
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    if (rank == 0) out.at_once = executable.compile_times(), out.first_run_us = us;
  });
  return out;
}

std::string to_text(const Timing& t) {
  const jit::Statistics& k = t.kernels;
  std::string out = "\ncompile time on rank 0\n";
  out += steps_text("waiting for machine code", t.waiting);
  out += fmt::format("  kernels of all ranks: {} asked for, {} in memory, {} too long, {} from disk, {} generated\n",
                     k.asked, k.from_memory, k.too_long, k.from_disk, k.generated);
  out += fmt::format(
      "  us in them: code generator's loading {:.1f}, LLVM IR {:.1f}, machine code {:.1f}, linking {:.1f}, placing "
      "{:.1f}, disk {:.1f}, waiting for others {:.1f}\n",
      k.plugin_load_us, k.emission_us, k.codegen_us, k.linking_us, k.placing_us, k.disk_us, k.waiting_us);
  out += steps_text("the same again, from memory", t.again);
  out += steps_text("not waiting, nothing in memory", t.at_once);
  out += fmt::format("{:<44}{:>12.1f} us\n", "  and its first run is over after", t.first_run_us);
  return out;
}

std::string to_json(const Timing& t) {
  const jit::Statistics& k = t.kernels;
  return Json{{"waiting", steps_json(t.waiting)},
              {"kernels",
               {{"asked", k.asked},
                {"from_memory", k.from_memory},
                {"too_long", k.too_long},
                {"from_disk", k.from_disk},
                {"generated", k.generated},
                {"plugin_load_us", k.plugin_load_us},
                {"emission_us", k.emission_us},
                {"codegen_us", k.codegen_us},
                {"linking_us", k.linking_us},
                {"placing_us", k.placing_us},
                {"disk_us", k.disk_us},
                {"waiting_us", k.waiting_us}}},
              {"again", steps_json(t.again)},
              {"not_waiting", steps_json(t.at_once)},
              {"first_run_us", t.first_run_us}}
      .dump();
}

}  // namespace kplan::cli
