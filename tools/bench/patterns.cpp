// How it works: each workload gets an equal share of the time that is left. Its methods are set up, checked, measured
// warm and cold by turns, and checked again. A check is one run on memory that is compared to its last byte, then runs
// that follow each other closely with other contents each.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "kplan/error.hpp"
#include "tools/bench/cache_flush.hpp"
#include "tools/bench/commands.hpp"
#include "tools/bench/report.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

/// Checks the methods of one case.
class Check {
 public:
  /// `seconds`, the same on all ranks: what the many runs of one check may take, where they are not at their least.
  Check(const Team& team, const Case& c, double seconds)
      : team_(team), whole_(c.whole), moved_(c.moved.fill ? c.moved : c.whole), turns_(c.turns), seconds_(seconds) {}

  /// Why a method is wrong, empty when it is right. Collective; no rank waits for others between the many runs, so that
  /// what is read too late, or written too early, is seen.
  std::string operator()(const Candidate& candidate) {
    std::string mistake;
    const auto compare = [&](const Contents& contents) {
      contents.fill(++seed_);
      candidate.run();
      if (mistake.empty()) mistake = contents.difference(seed_);
    };
    compare(whole_);
    const Clock::time_point start = Clock::now();
    compare(moved_);
    const double most = seconds_ / largest(team_, seconds_since(start));
    for (long left = std::max<long>(static_cast<long>(std::min(most, 50.0)), std::max(turns_, 3)); left > 0; --left)
      compare(moved_);
    return first_text(team_, mistake);
  }

 private:
  const Team& team_;
  Contents whole_, moved_;
  int turns_;
  double seconds_;
  unsigned seed_ = 0;  ///< no contents come twice
};

/// Sets the methods up. What kplan refuses is said and counted, and is no candidate.
std::vector<Candidate> prepared(const Team& team, const Options& options, const Case& c, int& failures) {
  std::vector<Candidate> out;
  for (const Method& m : c.methods) {
    if (!options.wants_method(m.name)) continue;
    try {
      out.push_back({m.name, m.prepare()});
    } catch (const Error& e) {
      ++failures;
      say(team, fmt::format("  {}: FAILED, {}\n", m.name, e.what()));
    }
  }
  return out;
}

/// The least that a way to measure gets, of the time of a workload.
constexpr double least_part = 0.25;

/// A way to measure.
struct Variant {
  std::string name;
  std::function<void()> before;  ///< each run; null: warm
  double part;                   ///< it gets one part of so many of the time that is left
};

std::vector<Result> measure(const Team& team, const Options& options, const Workload& w, double seconds,
                            CacheFlush& flush, int& failures) {
  const Clock::time_point start = Clock::now();
  const Case c = w.make(team);
  const std::size_t bytes = largest(team, c.bytes);
  std::vector<Candidate> candidates;
  Check check(team, c, largest(team, seconds) / 200);
  for (Candidate& candidate : prepared(team, options, c, failures)) {
    const std::string mistake = check(candidate);
    if (mistake.empty()) {
      candidates.push_back(std::move(candidate));
      continue;
    }
    ++failures;
    say(team, fmt::format("  {}: WRONG, {}\n", candidate.name, mistake));
  }
  std::vector<Result> rows;
  unsigned seed = 0;
  const std::vector<Variant> variants{
      {"warm", nullptr, 3}, {"rewritten", [&] { c.rewrite(++seed); }, 2}, {"cold", std::ref(flush), 1}};
  const Json traffic{{"peers", largest(team, static_cast<std::size_t>(c.peers))},
                     {"messages", largest(team, static_cast<std::size_t>(c.messages))}};
  for (const Variant& v : variants) {
    if (v.name == "rewritten" && !options.rewrites) continue;
    Limits limits;
    // Where making and checking arrays of megabytes has taken the time, samples get some of the others'.
    limits.seconds = std::max({0.05, least_part * seconds, (seconds - seconds_since(start)) / v.part});
    limits.seconds = largest(team, limits.seconds);
    if (v.before) limits.least_rounds = 11;
    const std::vector<Measured> measured = sample(team, candidates, limits, v.before);
    for (std::size_t k = 0; k < measured.size(); ++k)
      rows.push_back({w.name, team.size, bytes, v.name, candidates[k].name, measured[k], 0, false, traffic});
  }
  for (const Candidate& candidate : candidates) {
    const std::string mistake = check(candidate);
    if (mistake.empty()) continue;
    ++failures;
    for (Result& r : rows) r.is_wrong = r.is_wrong || r.method == candidate.name;
    say(team, fmt::format("  {}: WRONG after it was measured, {}\n", candidate.name, mistake));
  }
  compare(rows);
  return rows;
}

/// A workload on so many ranks.
struct Task {
  const Workload* workload;
  int ranks;
};

std::vector<Task> chosen(const std::vector<Workload>& all, const Team& world, const Options& options) {
  std::vector<Task> out;
  for (const Workload& w : all) {
    if (!options.wants(w.name)) continue;
    if (w.ranks.empty()) out.push_back({&w, world.size});
    for (const int ranks : w.ranks)
      if (ranks <= world.size) out.push_back({&w, ranks});
  }
  return out;
}

std::string listed(const std::vector<Workload>& all, const Options& options) {
  std::string out;
  for (const Workload& w : all)
    if (options.wants(w.name))
      out += w.name + (w.ranks.empty() ? "" : fmt::format("  (on {} ranks)", fmt::join(w.ranks, ", "))) + "\n";
  return out;
}

}  // namespace

int patterns(const Team& world, const Options& options) {
  const std::vector<Workload> all = all_workloads();
  if (options.is_list) {
    say(world, listed(all, options));
    return 0;
  }
  if (world.size < 2) {
    say(world, "patterns needs two ranks: mpirun -n 2 kplan-bench patterns\n");
    return 2;
  }
  const Clock::time_point start = Clock::now();
  const double seconds = options.seconds.value_or(500);
  CacheFlush flush(options.flush_mib ? static_cast<std::size_t>(*options.flush_mib * 1048576) : flush_bytes(world));
  say_where(world, flush.size_bytes());
  const std::vector<Task> tasks = chosen(all, world, options);
  std::vector<Result> results;
  int failures = 0;
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    Team team = first_ranks(world, tasks[k].ranks);
    if (team.comm != MPI_COMM_NULL) {
      const double share = (seconds - seconds_since(start)) / static_cast<double>(tasks.size() - k);
      const std::vector<Result> rows = measure(team, options, *tasks[k].workload, share, flush, failures);
      say(team, table(rows) + "\n");
      results.insert(results.end(), rows.begin(), rows.end());
      MPI_Comm_free(&team.comm);
    }
    wait_idly(world);
  }
  say(world, fmt::format("{} workloads in {:.0f} s\n", tasks.size(), seconds_since(start)) + summary(results));
  if (failures > 0) say(world, fmt::format("{} methods failed or gave wrong results\n", failures));
  std::vector<std::pair<std::string, Plot>> plots;
  for (const char* variant : {"warm", "cold", "rewritten"})
    if (options.rewrites || variant != std::string("rewritten"))
      plots.emplace_back(variant, ratios_plot(results, variant));
  write_files(world, options, results, plots);
  return failures > 0 ? 1 : 0;
}

}  // namespace kplan::bench
