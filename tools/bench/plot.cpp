// How it works: a gnuplot script with the data in it, piped into gnuplot.
#include "tools/bench/plot.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>

namespace kplan::bench {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '_' ? ' ' : c;
  }
  return out + "\"";
}

std::string script(const Plot& plot, const std::string& path) {
  const std::size_t width = plot.labels.empty() ? 900 : 300 + 24 * plot.labels.size();
  std::string out = fmt::format(
      "set terminal svg size {},700 noenhanced font 'sans,12' background rgb 'white'\nset output {}\nset title {}\n"
      "set xlabel {}\nset ylabel {}\nset key outside right top\nset grid\n",
      width, "\"" + path + "\"", quoted(plot.title), quoted(plot.x_label), quoted(plot.y_label));
  if (plot.has_log_x) out += "set logscale x 2\nset format x \"%.0b %B\"\n";
  if (plot.has_log_y) out += "set logscale y\n";
  if (!plot.labels.empty()) {
    out += "set xtics rotate by -60 left (";
    for (std::size_t k = 0; k < plot.labels.size(); ++k)
      out += fmt::format("{}{} {}", k > 0 ? ", " : "", quoted(plot.labels[k]), k);
    out += fmt::format(")\nset xrange [-1:{}]\n", plot.labels.size());
  }
  for (std::size_t s = 0; s < plot.series.size(); ++s) {
    out += fmt::format("$series{} << END\n", s);
    for (const auto& [x, y] : plot.series[s].points) out += fmt::format("{} {}\n", x, y);
    out += "END\n";
  }
  out += "plot ";
  for (std::size_t s = 0; s < plot.series.size(); ++s)
    out += fmt::format("{}$series{} using 1:2 with {} lw 1.5 pt {} title {}", s > 0 ? ", " : "", s,
                       plot.labels.empty() || s == 0 ? "linespoints" : "points", s + 4, quoted(plot.series[s].name));
  return out + "\n";
}

}  // namespace

std::string draw(const Plot& plot, const std::string& path) {
  if (plot.series.empty()) return "nothing to plot in " + path;
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0)
    return fmt::format(
        "gnuplot is not installed, {} is not drawn; install the package gnuplot-nox, or plot the numbers "
        "of --json",
        path);
  std::FILE* pipe = popen("gnuplot", "w");
  if (pipe == nullptr) return "gnuplot cannot be started, " + path + " is not drawn";
  const std::string text = script(plot, path);
  const bool is_written = std::fwrite(text.data(), 1, text.size(), pipe) == text.size();
  return pclose(pipe) == 0 && is_written ? "drawn: " + path : "gnuplot failed, " + path + " is not drawn";
}

Plot ratios_plot(const std::vector<Result>& results, const std::string& variant) {
  Plot out;
  out.title = variant + ": time as a multiple of kplan's; above 1 kplan is faster";
  out.y_label = "time / kplan's time";
  out.series.push_back({"kplan", {}});
  for (const Result& r : results) {
    if (r.variant != variant || r.ratio <= 0) continue;
    const std::string label = fmt::format("{}, {}", r.workload, text_of_bytes(r.bytes));
    if (out.labels.empty() || out.labels.back() != label) {
      out.series[0].points.emplace_back(static_cast<double>(out.labels.size()), 1.0);
      out.labels.push_back(label);
    }
    if (r.method.starts_with("kplan")) continue;
    auto s = std::ranges::find(out.series, r.method, &Series::name);
    if (s == out.series.end()) s = out.series.insert(s, {r.method, {}});
    s->points.emplace_back(static_cast<double>(out.labels.size() - 1), r.ratio);
  }
  return out;
}

}  // namespace kplan::bench
