#pragma once
// Plots as SVG files, drawn by gnuplot where it is installed.

#include <string>
#include <utility>
#include <vector>

#include "tools/bench/results.hpp"

namespace kplan::bench {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct Plot {
  std::string title, x_label, y_label;
  bool has_log_x = false, has_log_y = true;
  std::vector<std::string> labels;  ///< of x = 0, 1, ...: then series are drawn as points, else as lines
  std::vector<Series> series;
};

/// Returns what to tell the user: that it is drawn, or why not. Call on one rank only.
std::string draw(const Plot& plot, const std::string& path);

/// Every method's median as a multiple of kplan's, workloads from left to right; one variant.
Plot ratios_plot(const std::vector<Result>& results, const std::string& variant);

}  // namespace kplan::bench
