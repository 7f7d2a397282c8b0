// How it works: rows are grouped by what they measured; a document is the rows as they are.
#include "tools/bench/results.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>
#include <tuple>

namespace kplan::bench {
namespace {

bool is_kplan(const Result& r) { return r.method.starts_with("kplan"); }

using Key = std::tuple<std::string, int, std::size_t, std::string>;
Key key_of(const Result& r) { return {r.workload, r.ranks, r.bytes, r.variant}; }

}  // namespace

void compare(std::vector<Result>& rows) {
  std::map<Key, double> of_kplan;
  std::map<Key, Result*> best;
  for (Result& r : rows) {
    const double us = r.measured.us.median;
    if (is_kplan(r)) {
      const auto [it, is_new] = of_kplan.emplace(key_of(r), us);
      if (!is_new) it->second = std::min(it->second, us);
      continue;
    }
    if (r.method.ends_with("(limit)")) continue;
    Result*& known = best[key_of(r)];
    if (known == nullptr || us < known->measured.us.median) known = &r;
  }
  for (Result& r : rows) {
    const auto it = of_kplan.find(key_of(r));
    r.ratio = it == of_kplan.end() ? 0 : r.measured.us.median / it->second;
  }
  for (auto& [key, r] : best) r->is_best_other = true;
}

Json document(const std::vector<Result>& results) {
  Json out{{"machine", describe_machine()}, {"mpi", describe_mpi()}, {"results", Json::array()}};
  const auto rounded = [](double v) { return std::round(v * 1e4) / 1e4; };
  for (const Result& r : results) {
    Json row{{"workload", r.workload},
             {"ranks", r.ranks},
             {"bytes", r.bytes},
             {"variant", r.variant},
             {"method", r.method},
             {"median_us", rounded(r.measured.us.median)},
             {"p10_us", rounded(r.measured.us.p10)},
             {"p90_us", rounded(r.measured.us.p90)},
             {"runs", r.measured.runs}};
    if (r.ratio > 0) row["ratio_to_kplan"] = rounded(r.ratio);
    if (r.is_best_other) row["is_best_alternative"] = true;
    for (const auto& [name, value] : r.more.items()) row[name] = value;
    out["results"].push_back(std::move(row));
  }
  return out;
}

void write_json(const std::string& path, const std::vector<Result>& results) {
  std::ofstream file(path);
  file << document(results).dump(1) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::string summary(const std::vector<Result>& results) {
  int cases = 0, faster = 0, even = 0;
  double logarithms = 0;
  for (const Result& r : results) {
    if (!r.is_best_other || r.ratio <= 0) continue;
    ++cases;
    logarithms += std::log(r.ratio);
    if (r.ratio > 1.05) ++faster;
    else if (r.ratio >= 0.95) ++even;
  }
  if (cases == 0) return "";
  return fmt::format(
      "against the best alternative of each: kplan is faster in {} of {} cases, even (within 5 %) in {}, slower in {}; "
      "geometric mean of the ratios {:.2f}\n",
      faster, cases, even, cases - faster - even, std::exp(logarithms / cases));
}

}  // namespace kplan::bench
