// How it works: what is timed is making a method ready for its first exchange and taking it down again, as each of them
// does it. kplan starts without any plan in memory and without machine code: a process keeps what it has made, and so
// cannot make it again and again. Memory is what the C library's heap gained, and this rank's share of what lies in
// shared segments after a first run. What one rank works out for itself is timed on worlds that are only imagined.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "engine/bind.hpp"
#include "engine/schedule/schedule.hpp"
#include "tools/bench/commands.hpp"
#include "tools/bench/methods/told_lists.hpp"
#include "tools/bench/report.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

/// What a reader has to know of the tables.
constexpr const char* about =
    "hand-written methods are given the lists of both ends; of ghost gathers `hand, lists exchanged` is given those "
    "of\n"
    "the receivers, as kplan and PetscSF are, which find the other end's out\n"
    "machine code is left out (KPLAN_JIT=off): kplan makes it in the background, in some 0.5 ms a kernel, or takes it\n"
    "from disk, in some 10 us; `kplan explain --timing` tells what a plan takes\n"
    "memory is what one set-up adds to the heap and, with its first run, to shared segments; those of kplan's ranks "
    "are\n"
    "made by its first plan and hold the next ones, too\n\n";

/// A case with the number of elements that a rank sends, by which memory is divided.
struct Task {
  std::string name;
  double entries = 1;
  bool is_gather = false;
  std::function<Case(const Team&)> make;
};

std::vector<Task> exchanges() {
  std::vector<Task> out;
  for (const std::int64_t entries : {1000, 10000, 100000, 1000000, 10000000})
    for (const bool is_sorted : {true, false})
      out.push_back({fmt::format("ghost gather, {} entries, {}", entries, is_sorted ? "sorted" : "shuffled"),
                     static_cast<double>(entries), true,
                     [=](const Team& team) { return ghost_gather(team, entries, is_sorted); }});
  for (const Workload& w : all_workloads())
    if (w.name == "halo 64^3, width 1, 26 neighbours, split x" || w.name == "halo 256^3, width 1, faces, split z" ||
        w.name == "matrix transpose 2048" || w.name == "finite elements, 2000 nodes of 3" ||
        w.name == "redistribution, blocks to blocks of 64 in turn")
      out.push_back({w.name, 0, false, w.make});
  return out;
}

double heap_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<double>(heap.uordblks + heap.hblkhd);
}

/// This process's share of pages in memory that processes share.
double shared_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Pss_Shmem:")) return 1024 * std::stod(line.substr(line.find(':') + 1));
  return 0;
}

/// What one set-up leaves behind, of the rank that has most.
struct Kept {
  double heap_bytes, shared_bytes;
};
Kept kept(const Team& team, const Method& m) {
  const double heap_before = heap_bytes(), shared_before = shared_bytes();
  const auto run = m.prepare();
  const double heap = heap_bytes() - heap_before;
  MPI_Barrier(team.comm);
  run();
  MPI_Barrier(team.comm);
  return {largest(team, std::max(0.0, heap)), largest(team, std::max(0.0, shared_bytes() - shared_before))};
}

/// The methods of a case that are told apart here: how kplan's memory is lent changes nothing.
std::vector<Method> methods_of(const Team& team, const Options& options, const Task& task, const Case& c) {
  std::vector<Method> out = c.methods;
  std::erase_if(out, [&](const Method& m) { return m.name.starts_with("kplan, "); });
  if (task.is_gather) {
    const auto exchange = std::make_shared<const Exchange>(fused(*c.exchange));
    const std::vector<Link> told = told_sends(*exchange);
    const bool is_right = std::ranges::equal(told, exchange->sends, [](const Link& a, const Link& b) {
      return a.peer == b.peer && std::get<IndexList>(a.mine.at(0)).indices == std::get<IndexList>(b.mine.at(0)).indices;
    });
    if (largest(team, is_right ? 0.0 : 1.0) > 0) throw std::runtime_error("setup: owners were told other lists");
    const auto hand = std::ranges::find(out, "hand, persistent", &Method::name);
    out.insert(hand + 1, packed_told(exchange));
  }
  std::erase_if(out, [&](const Method& m) { return !options.wants_method(m.name); });
  return out;
}

std::vector<Result> measure(const Team& team, const Options& options, const Task& task, double seconds) {
  const Case c = task.make(team);
  std::vector<Candidate> candidates;
  std::vector<Kept> memory;
  for (const Method& m : methods_of(team, options, task, c)) {
    memory.push_back(kept(team, m));
    candidates.push_back({m.name, [prepare = m.prepare] { (void)prepare(); }});
  }
  Limits limits;
  limits.seconds = seconds;
  limits.least_rounds = 3;
  const std::vector<Measured> measured = sample(team, candidates, limits, nullptr);
  const double entries = task.entries > 0 ? task.entries : static_cast<double>(largest(team, c.bytes)) / 8;
  std::vector<Result> rows;
  for (std::size_t k = 0; k < candidates.size(); ++k)
    rows.push_back({"set-up, " + task.name,
                    team.size,
                    largest(team, c.bytes),
                    "set-up",
                    candidates[k].name,
                    measured[k],
                    0,
                    false,
                    {{"heap_bytes", memory[k].heap_bytes},
                     {"heap_bytes_an_entry", memory[k].heap_bytes / entries},
                     {"shared_bytes", memory[k].shared_bytes}}});
  compare(rows);
  return rows;
}

std::string memory(const std::vector<Result>& rows) {
  std::string out;
  for (const Result& r : rows)
    out += fmt::format("{}{} {:.1f}, {}", out.empty() ? "  heap bytes an entry, shared memory: " : "; ", r.method,
                       r.more.at("heap_bytes_an_entry").get<double>(),
                       text_of_bytes(static_cast<std::size_t>(r.more.at("shared_bytes").get<double>())));
  return out.empty() ? "" : out + "\n";
}

/// The schedule of one rank that sends to so many others, worked out from values to messages.
Candidate dry(std::int64_t neighbours, std::int64_t ranks) {
  PlanBuilder builder("ring");
  builder.parameter("n", Scalar::i64);
  builder.buffer("A", Scalar::f64, {"n", "10"}).buffer("B", Scalar::f64, {"10"});
  builder.communicate("pass",
                      "A[d - 1, k]@(r + d) % size <<= B[k]@r where r in world, d in range(1, n + 1), k in range(10)");
  const auto plan = std::make_shared<const Plan>(builder.build());
  return {"kplan", [=] {
            const std::shared_ptr<const PlanModel> model(plan, &plan->model());
            const BoundValues values = bind_values(model, {{"n", neighbours}}, ranks / 2, ranks);
            const Schedule schedule = build_schedule(values.bound);
            if (schedule.statements[0].sends.size() != static_cast<std::size_t>(neighbours))
              throw std::runtime_error("setup: a rank has found another number of neighbours");
          }};
}

std::vector<Result> measure_dry(const Options& options, std::int64_t neighbours, std::int64_t ranks) {
  const std::string name = fmt::format("one of {} ranks, {} neighbours", ranks, neighbours);
  if (!options.wants(name) || !options.wants_method("kplan")) return {};
  Limits limits;
  limits.seconds = 0.5;
  limits.least_rounds = 3;
  const std::vector<Measured> measured = sample(team_of(MPI_COMM_SELF), {dry(neighbours, ranks)}, limits, nullptr);
  std::vector<Result> rows{{"set-up, " + name, 1, static_cast<std::size_t>(80 * neighbours), "dry", "kplan",
                            measured[0], 0, false, Json::object()}};
  compare(rows);
  return rows;
}

}  // namespace

int setup(const Team& world, const Options& options) {
  const std::vector<Task> all = exchanges();
  std::vector<Task> tasks;
  std::ranges::copy_if(all, std::back_inserter(tasks), [&](const Task& t) { return options.wants(t.name); });
  if (options.is_list) {
    for (const Task& t : tasks) say(world, t.name + "\n");
    return 0;
  }
  if (world.size < 2) {
    say(world, "setup needs two ranks: mpirun -n 2 kplan-bench setup\n");
    return 2;
  }
  say_where(world, 0);
  say(world, about);
  Team team = first_ranks(world, world.size);
  const double seconds = options.seconds.value_or(120) / static_cast<double>(std::max<std::size_t>(tasks.size(), 1));
  std::vector<Result> results;
  for (const Task& t : tasks) {
    const std::vector<Result> rows = measure(team, options, t, seconds);
    say(team, table(rows) + memory(rows) + "\n");
    results.insert(results.end(), rows.begin(), rows.end());
  }
  say(team, summary(results));
  if (world.rank == 0)
    for (const std::int64_t neighbours : {2, 26, 1000})
      for (const std::int64_t ranks : {10, 1000, 1000000}) {
        if (ranks <= neighbours) continue;
        const std::vector<Result> rows = measure_dry(options, neighbours, ranks);
        say(team, table(rows));
        results.insert(results.end(), rows.begin(), rows.end());
      }
  wait_idly(world);
  write_files(world, options, results, {});
  return 0;
}

}  // namespace kplan::bench
