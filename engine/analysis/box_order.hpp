#pragma once
// The order of environments in a union of boxes.

#include <vector>

#include "engine/analysis/formula.hpp"

namespace kplan {

/// Whether walking the boxes one after the other meets all environments in where-list order.
bool are_in_order(const std::vector<Box>& boxes);

/// Joins neighbours that make one box together.
std::vector<Box> joined(std::vector<Box> boxes);

/// Calls f(indices) for each environment of the box in order: an index into each number's positions. Stops when f
/// returns false.
template <class F>
void each_environment(const Box& box, const F& f) {
  std::vector<std::int64_t> at(box.positions.size(), 0);
  for (;;) {
    if (!f(at)) return;
    std::size_t n = at.size();
    while (n-- > 0) {
      if (++at[n] < box.positions[n].count) break;
      at[n] = 0;
    }
    if (n == static_cast<std::size_t>(-1)) return;
  }
}

}  // namespace kplan
