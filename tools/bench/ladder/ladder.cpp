// How it works: for each size all paths are opened between ranks 0 and 1, checked, and measured by turns; other ranks
// sleep. A latency is half of an echo's time.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tools/bench/cache_flush.hpp"
#include "tools/bench/commands.hpp"
#include "tools/bench/ladder/paths.hpp"
#include "tools/bench/report.hpp"

namespace kplan::bench {
namespace {

constexpr std::size_t sizes[] = {8, 64, 512, 4096, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
const std::vector<std::string> variants{"warm", "cold", "both-ways"};

std::byte pattern(int rank, std::size_t k) { return static_cast<std::byte>(k * 31 + k / 251 + 97 * rank + 1); }

/// Throws when `in` does not hold what that rank has sent.
void require_from(const Ends& ends, int sender, const std::string& path) {
  const auto in = ends.in.bytes();
  for (std::size_t k = 0; k < in.size(); ++k)
    if (in[k] != pattern(sender, k))
      throw std::runtime_error(fmt::format("ladder, {}, {} bytes: byte {} is wrong", path, in.size(), k));
}

void check(const Team& pair, Ends& ends, const Path& path) {
  if (path.name.starts_with("memcpy")) return;
  const auto out = ends.out.bytes();
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = pattern(pair.rank, k);
  std::ranges::fill(ends.in.bytes(), std::byte{0});
  drive_together(pair);
  path.echo();
  require_from(ends, 0, path.name);
  std::ranges::fill(ends.in.bytes(), std::byte{0});
  drive_together(pair);
  path.both_ways();
  require_from(ends, 1 - pair.rank, path.name);
  drive_together(pair);
}

std::string rate(const std::vector<Result>& rows) {
  std::string out;
  for (const Result& r : rows)
    if (r.variant == "both-ways" && r.bytes >= 4096)
      out += fmt::format("{}{} {:.2f}", out.empty() ? "  GB/s each way, both ways at once: " : "; ", r.method,
                         static_cast<double>(r.bytes) / r.measured.us.median / 1000);
  return out.empty() ? "" : out + "\n";
}

std::vector<Result> measure(const Team& pair, const std::vector<Route>& routes, const Options& options,
                            std::size_t bytes, double seconds, CacheFlush& flush) {
  Ends ends(pair, bytes);
  std::vector<Path> paths = kplan_paths(pair, routes, ends);
  for (Path& p : other_paths(pair, ends)) paths.push_back(std::move(p));
  std::erase_if(paths, [&](const Path& p) { return !options.wants_method(p.name); });
  for (const Path& p : paths) check(pair, ends, p);
  std::vector<Result> rows;
  for (const std::string& variant : variants) {
    std::vector<Candidate> candidates;
    for (const Path& p : paths) candidates.push_back({p.name, variant == "both-ways" ? p.both_ways : p.echo});
    Limits limits;
    limits.seconds = seconds / static_cast<double>(variants.size());
    const std::vector<Measured> measured =
        sample(pair, candidates, limits, variant == "cold" ? std::function<void()>(std::ref(flush)) : nullptr);
    for (std::size_t k = 0; k < paths.size(); ++k) {
      rows.push_back({"ladder", 2, bytes, variant, paths[k].name, measured[k], 0, false, Json::object()});
      if (variant == "both-ways") continue;
      Summary& us = rows.back().measured.us;
      for (double* value : {&us.median, &us.p10, &us.p90}) *value /= 2;
    }
  }
  compare(rows, "kplan, channel");
  return rows;
}

std::vector<std::pair<std::string, Plot>> plots(const std::vector<Result>& results) {
  std::vector<std::pair<std::string, Plot>> out;
  for (const std::string& variant : variants) {
    Plot plot{variant + ": time of a message by size", "bytes", "microseconds", true, true, {}, {}};
    for (const Result& r : results) {
      if (r.variant != variant) continue;
      auto s = std::ranges::find(plot.series, r.method, &Series::name);
      if (s == plot.series.end()) s = plot.series.insert(s, {r.method, {}});
      s->points.emplace_back(static_cast<double>(r.bytes), r.measured.us.median);
    }
    out.emplace_back(variant, std::move(plot));
  }
  return out;
}

}  // namespace

int ladder(const Team& world, const Options& options) {
  if (world.size < 2) {
    say(world, "ladder needs two ranks: mpirun -n 2 kplan-bench ladder\n");
    return 2;
  }
  std::vector<std::size_t> chosen;
  for (const std::size_t bytes : sizes)
    if (options.wants("ladder/" + std::to_string(bytes))) chosen.push_back(bytes);
  if (options.is_list) {
    for (const std::size_t bytes : chosen) say(world, fmt::format("ladder/{}\n", bytes));
    return 0;
  }
  Team pair = first_ranks(world, 2);
  std::vector<Result> results;
  if (pair.comm != MPI_COMM_NULL) {
    CacheFlush flush(options.flush_mib ? static_cast<std::size_t>(*options.flush_mib * 1048576) : flush_bytes(pair));
    say_where(pair, flush.size_bytes());
    const double seconds = options.seconds.value_or(90) / static_cast<double>(std::max<std::size_t>(chosen.size(), 1));
    const std::vector<Route> all_routes = routes(pair);
    for (const std::size_t bytes : chosen) {
      const std::vector<Result> rows = measure(pair, all_routes, options, bytes, seconds, flush);
      say(pair, table(rows) + rate(rows) + "\n");
      results.insert(results.end(), rows.begin(), rows.end());
    }
    write_files(pair, options, results, plots(results));
  }
  wait_idly(world);
  return 0;
}

}  // namespace kplan::bench
