// How it works: percentiles between the two nearest samples; the confidence interval of the median is that of the
// binomial distribution, which asks nothing of how the samples are distributed.
#include "tools/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kplan::bench {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Summary summarise(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  Summary out{percentile(samples, 0.5), percentile(samples, 0.1), percentile(samples, 0.9),
              std::numeric_limits<double>::infinity()};
  if (samples.size() < 6) return out;
  const auto count = static_cast<double>(samples.size());
  const double half = 0.98 * std::sqrt(count);
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(count / 2 - half)));
  const auto high = std::min(samples.size() - 1, static_cast<std::size_t>(std::ceil(count / 2 + half)));
  out.uncertainty = (samples[high] - samples[low]) / 2 / out.median;
  return out;
}

}  // namespace kplan::bench
