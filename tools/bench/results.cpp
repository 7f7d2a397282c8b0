// How it works: rows are grouped by what they measured; a document is the rows as they are.
#include "tools/bench/results.hpp"

#include <fmt/format.h>

#include <algorithm>
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

void compare(std::vector<Result>& rows, const std::string& base) {
  std::map<Key, double> of_kplan;
  std::map<Key, Result*> best;
  for (Result& r : rows) {
    if (r.is_wrong) continue;
    const double us = r.measured.us.median;
    if (r.method == base) of_kplan.emplace(key_of(r), us);
    if (is_kplan(r) || r.method.ends_with("(limit)")) continue;
    Result*& known = best[key_of(r)];
    if (known == nullptr || us < known->measured.us.median) known = &r;
  }
  for (Result& r : rows) {
    const auto it = of_kplan.find(key_of(r));
    r.ratio = it == of_kplan.end() || r.is_wrong ? 0 : r.measured.us.median / it->second;
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
             {"samples", r.measured.samples},
             {"batch", r.measured.batch},
             {"runs", r.measured.samples * r.measured.batch}};
    if (std::isfinite(r.measured.us.uncertainty)) row["uncertainty"] = rounded(r.measured.us.uncertainty);
    if (r.is_wrong) row["wrong"] = true;
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
  struct Standing {
    int cases = 0, faster = 0, slower = 0, unsure = 0;
    double logarithms = 0;
  };
  std::map<Key, Summary> best;
  for (const Result& r : results)
    if (r.is_best_other) best.emplace(key_of(r), r.measured.us);
  std::vector<std::string> methods, variants;
  std::map<std::pair<std::string, std::string>, Standing> standings;
  for (const Result& r : results) {
    const auto other = best.find(key_of(r));
    if (!is_kplan(r) || r.is_wrong || other == best.end()) continue;
    if (std::ranges::find(methods, r.method) == methods.end()) methods.push_back(r.method);
    if (std::ranges::find(variants, r.variant) == variants.end()) variants.push_back(r.variant);
    const Summary &mine = r.measured.us, &its = other->second;
    const double ratio = its.median / mine.median;
    Standing& s = standings[{r.method, r.variant}];
    ++s.cases;
    s.logarithms += std::log(ratio);
    // What is unsure counts where it is clear all the same.
    const bool is_unsure = mine.is_unsure() || its.is_unsure();
    const double margin = is_unsure ? std::hypot(mine.uncertainty, its.uncertainty) : 0;
    if (ratio * (1 - margin) > 1.05) ++s.faster;
    else if (ratio * (1 + margin) < 1 / 1.05) ++s.slower;
    else if (is_unsure) ++s.unsure;
  }
  if (methods.empty()) return "";
  std::string out =
      "x kplan of the best alternative, geometric mean; above 1 kplan is faster (how often: faster, even within 5 %, "
      "slower, unsure)\n";
  for (const std::string& m : methods) {
    out += fmt::format("  {:<34}", m);
    for (const std::string& v : variants) {
      const auto found = standings.find({m, v});
      if (found == standings.end()) continue;
      const Standing& s = found->second;
      out += fmt::format("  {} {} ({}, {}, {}, {})", v, text_of_ratio(std::exp(s.logarithms / s.cases)), s.faster,
                         s.cases - s.faster - s.slower - s.unsure, s.slower, s.unsure);
    }
    out += "\n";
  }
  return out;
}

}  // namespace kplan::bench
