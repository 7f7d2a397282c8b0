#pragma once
// What a list of samples says: percentiles, and how sure the median is.

#include <vector>

namespace kplan::bench {

struct Summary {
  double median = 0, p10 = 0, p90 = 0;
  /// Half of the 95 % confidence interval of the median, as a share of it; infinite for less than six samples.
  double uncertainty = 0;
  bool is_unsure() const { return uncertainty > 0.05; }
};

Summary summarise(std::vector<double> samples);

}  // namespace kplan::bench
