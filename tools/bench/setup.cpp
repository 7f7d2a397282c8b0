// How it works: what is timed is making a method ready for its first exchange and taking it down again, as each of them
// does it. kplan starts without any plan in memory and without machine code, which is made in the background and is
// told apart by `kplan explain --timing`. Memory is what the C library's heap gained, so without what lies in shared
// segments and in MPI's own pools. What one rank works out for itself is timed on worlds that are only imagined.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "engine/bind.hpp"
#include "engine/schedule/schedule.hpp"
#include "tools/bench/commands.hpp"
#include "tools/bench/report.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

/// A case with the number of elements that a rank sends, by which memory is divided.
struct Task {
  std::string name;
  double entries = 1;
  std::function<Case(const Team&)> make;
};

std::vector<Task> exchanges() {
  std::vector<Task> out;
  for (const std::int64_t entries : {1000, 10000, 100000, 1000000, 10000000})
    for (const bool is_sorted : {true, false})
      out.push_back({fmt::format("ghost gather, {} entries, {}", entries, is_sorted ? "sorted" : "shuffled"),
                     static_cast<double>(entries),
                     [=](const Team& team) { return ghost_gather(team, entries, is_sorted); }});
  for (const Workload& w : all_workloads())
    if (w.name == "halo 64^3, width 1, 26 neighbours, split x" || w.name == "halo 256^3, width 1, faces, split z" ||
        w.name == "matrix transpose 2048" || w.name == "finite elements, 2000 nodes of 3" ||
        w.name == "redistribution, blocks to blocks of 64 in turn")
      out.push_back({w.name, 0, w.make});
  return out;
}

double heap_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<double>(heap.uordblks + heap.hblkhd);
}

/// What one set-up leaves on the heap, of the rank that has most.
double kept_bytes(const Team& team, const Method& m) {
  const double before = heap_bytes();
  const auto run = m.prepare();
  return largest(team, std::max(0.0, heap_bytes() - before));
}

std::vector<Result> measure(const Team& team, const Options& options, const Task& task, double seconds) {
  const Case c = task.make(team);
  std::vector<Candidate> candidates;
  std::vector<double> kept;
  for (const Method& m : c.methods) {
    if (!options.wants_method(m.name) || m.name.starts_with("kplan, ")) continue;
    kept.push_back(kept_bytes(team, m));
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
                    {{"heap_bytes", kept[k]}, {"heap_bytes_an_entry", kept[k] / entries}}});
  compare(rows);
  return rows;
}

std::string memory(const std::vector<Result>& rows) {
  std::string out;
  for (const Result& r : rows)
    out += fmt::format("{}{} {:.1f}", out.empty() ? "  heap bytes an entry: " : "; ", r.method,
                       r.more.at("heap_bytes_an_entry").get<double>());
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
