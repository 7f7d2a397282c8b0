#pragma once
// The order of environments in a union of boxes.

#include <optional>
#include <vector>

#include "engine/analysis/formula.hpp"

namespace kplan {

/// Whether walking the boxes one after the other meets all environments in where-list order.
bool are_in_order(const std::vector<Box>& boxes);

/// Joins neighbours that make one box together.
std::vector<Box> joined(std::vector<Box> boxes);

/// How many environments the box has, or `most`.
std::int64_t environment_count(const Box& box, std::int64_t most);

/// The environments of boxes in where-list order: each is a number whose digits, the first number's first, are the
/// positions, counted from the lowest that the boxes have.
struct OrderedEnvironments {
  std::vector<std::int64_t> lowest, extents;  ///< by number; extents: how many values the digit can have
  std::vector<std::uint64_t> keys;            ///< ascending
};
/// Nothing where boxes have different sets or evaluators, or 63 bits do not suffice. Cost: n log b for n environments
/// in b boxes.
std::optional<OrderedEnvironments> in_order(const std::vector<Box>& boxes);

/// Calls f(indices) for each environment of the box in order: an index into each number's positions. Stops when f
/// returns false.
template <class F>
void each_environment(const Box& box, const F& f) {
  std::vector<std::int64_t> at(box.positions.size(), 0);
  if (box.only) {
    for (std::uint64_t key : *box.only) {
      for (std::size_t n = at.size(); n-- > 0;) {
        const auto count = static_cast<std::uint64_t>(box.positions[n].count);
        at[n] = count > 1 ? static_cast<std::int64_t>(key % count) : 0;
        if (count > 1) key /= count;
      }
      if (!f(at)) return;
    }
    return;
  }
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
