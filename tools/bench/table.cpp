// How it works: one line a method, one group of columns a variant; variants and methods in the order of the rows.
#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/results.hpp"

namespace kplan::bench {
namespace {

std::vector<std::string> distinct(const std::vector<Result>& rows, std::string Result::*member) {
  std::vector<std::string> out;
  for (const Result& r : rows)
    if (std::ranges::find(out, r.*member) == out.end()) out.push_back(r.*member);
  return out;
}

std::string cells(const Result& r) {
  const Summary& us = r.measured.us;
  const double percent = us.median > 0 ? 100 * (us.p90 - us.p10) / us.median : 0;
  const std::string spread = percent < 1000 ? fmt::format("{:.0f}%", percent) : ">999%";
  const std::string marks = std::string(us.is_unsure() ? "~" : "") + (r.is_best_other ? "*" : "");
  const std::string ratio = r.is_wrong ? "WRONG" : r.ratio > 0 ? text_of_ratio(r.ratio) : "-";
  return fmt::format("{:>10}{:<2}{:>9} {:>6} {:>7}", text_of_us(us.median), marks, text_of_us(us.p10), spread, ratio);
}

}  // namespace

std::string text_of_us(double us) {
  if (us <= 0) return "-";
  const double ns = us * 1000;
  const char* unit = ns < 1000 ? "ns" : ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s";
  const double value = ns < 1000 ? ns : ns < 1e6 ? ns / 1e3 : ns < 1e9 ? ns / 1e6 : ns / 1e9;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
}

std::string text_of_ratio(double ratio) { return fmt::format("{:.{}f}", ratio, ratio < 0.1 ? 3 : 2); }

std::string text_of_bytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const auto value = static_cast<double>(bytes);
  const auto [scaled, unit] =
      bytes < 1024 * 1024 ? std::pair(value / 1024, "KiB") : std::pair(value / 1024 / 1024, "MiB");
  return fmt::format("{:.{}f} {}", scaled,
                     scaled < 10 && scaled != static_cast<double>(static_cast<int>(scaled)) ? 1 : 0, unit);
}

std::string legend() {
  return "columns: the median; ~ where it is unsure by more than 5 % (95 % confidence); * the best alternative;\n"
         "         p10, the tenth percentile; spread, (p90 - p10) / median; x kplan, the median as a multiple of that "
         "of\n"
         "         kplan's first row: above 1 kplan is faster\n";
}

std::string table(const std::vector<Result>& rows) {
  if (rows.empty()) return "";
  const std::vector<std::string> variants = distinct(rows, &Result::variant), methods = distinct(rows, &Result::method);
  std::string out = fmt::format("{}  {} ranks, {}", rows[0].workload, rows[0].ranks, text_of_bytes(rows[0].bytes));
  if (const Json& more = rows[0].more; more.contains("messages"))
    out += fmt::format(" from each; messages: {}, peers: {}", more["messages"].get<int>(), more["peers"].get<int>());
  out += "\n";
  out += fmt::format("  {:<34}", "");
  for (const std::string& v : variants) out += fmt::format("{:>10}  {:>9} {:>6} {:>7}", v, "p10", "spread", "x kplan");
  out += "\n";
  for (const std::string& m : methods) {
    out += fmt::format("  {:<34}", m);
    for (const std::string& v : variants) {
      const auto r = std::ranges::find_if(rows, [&](const Result& x) { return x.method == m && x.variant == v; });
      out += r == rows.end() ? fmt::format("{:>36}", "-") : cells(*r);
    }
    out += "\n";
  }
  return out;
}

}  // namespace kplan::bench
