#include "engine/analysis/box_order.hpp"

#include <algorithm>

namespace kplan {
namespace {

bool precedes(const Box& a, const Box& b) {
  for (std::size_t n = 0; n < a.positions.size(); ++n) {
    const Progression &p = a.positions[n], &q = b.positions[n];
    if (p.count == 1 && q.count == 1 && p.first == q.first) continue;
    return p.last() < q.first;
  }
  return false;
}

bool is_same_set(const BoxSet& a, const BoxSet& b) {
  return a.first == b.first && a.step == b.step && a.count == b.count &&
         (a.list == b.list || (a.list && b.list && *a.list == *b.list));
}

/// The one progression that is p and then q.
std::optional<Progression> concatenated(const Progression& p, const Progression& q) {
  const std::int64_t step = p.count > 1 ? p.step : q.first - p.first;
  if (step <= 0 || q.first != p.last() + step || (q.count > 1 && q.step != step)) return std::nullopt;
  return Progression{p.first, step, p.count + q.count};
}

bool join(Box& a, const Box& b) {
  if (a.only || b.only) return false;
  std::size_t different = a.positions.size();
  for (std::size_t n = 0; n < a.positions.size(); ++n) {
    if (!is_same_set(a.sets[n], b.sets[n])) return false;
    if (a.positions[n] == b.positions[n]) continue;
    if (different != a.positions.size()) return false;
    different = n;
  }
  if (different == a.positions.size()) return false;
  const auto whole = concatenated(a.positions[different], b.positions[different]);
  if (!whole) return false;
  a.positions[different] = *whole;
  return true;
}

/// Merges neighbouring runs, which end there, until there is one.
void merge_runs(std::vector<std::uint64_t>& keys, std::vector<std::size_t> ends) {
  if (std::ranges::is_sorted(keys)) return;
  std::vector<std::uint64_t> merged(keys.size());
  while (ends.size() > 1) {
    std::vector<std::size_t> next;
    std::size_t first = 0;
    const auto at = [](auto& list, std::size_t n) { return list.begin() + static_cast<std::ptrdiff_t>(n); };
    for (std::size_t k = 0; k < ends.size(); k += 2) {
      const std::size_t middle = ends[k], end = k + 1 < ends.size() ? ends[k + 1] : middle;
      std::merge(at(keys, first), at(keys, middle), at(keys, middle), at(keys, end), at(merged, first));
      next.push_back(first = end);
    }
    keys.swap(merged);
    ends = std::move(next);
  }
}

}  // namespace

bool are_in_order(const std::vector<Box>& boxes) {
  for (std::size_t k = 1; k < boxes.size(); ++k)
    if (!precedes(boxes[k - 1], boxes[k])) return false;
  return true;
}

std::vector<Box> joined(std::vector<Box> boxes) {
  std::vector<Box> out;
  for (Box& b : boxes) {
    out.push_back(std::move(b));
    while (out.size() > 1 && join(out[out.size() - 2], out.back())) out.pop_back();
  }
  return out;
}

std::int64_t environment_count(const Box& box, std::int64_t most) {
  if (box.only) return std::min(std::ssize(*box.only), most);
  Wide out = 1;
  for (const Progression& p : box.positions) out = std::min<Wide>(out * p.count, most);
  return static_cast<std::int64_t>(out);
}

std::optional<OrderedEnvironments> in_order(const std::vector<Box>& boxes) {
  const Box& whole = boxes[0];
  const std::size_t numbers = whole.positions.size();
  if (whole.positions[0].count != 1) return std::nullopt;
  OrderedEnvironments out;
  for (std::size_t n = 0; n < numbers; ++n) {
    std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
    for (const Box& b : boxes) {
      if (!b.sets[n].is_known || !is_same_set(b.sets[n], whole.sets[n])) return std::nullopt;
      lowest = std::min(lowest, b.positions[n].first);
      highest = std::max(highest, b.positions[n].last());
    }
    out.lowest.push_back(lowest);
    out.extents.push_back(highest - lowest + 1);
  }
  if (out.extents[0] != 1) return std::nullopt;
  std::vector<std::uint64_t> weights(numbers, 1);
  for (std::size_t n = numbers; n-- > 1;)
    if (__builtin_mul_overflow(weights[n], static_cast<std::uint64_t>(out.extents[n]), &weights[n - 1]) ||
        weights[n - 1] > INT64_MAX)
      return std::nullopt;
  std::vector<std::size_t> ends;
  for (const Box& b : boxes) {
    each_environment(b, [&](const std::vector<std::int64_t>& indices) {
      std::uint64_t key = 0;
      for (std::size_t n = 1; n < numbers; ++n)
        key += static_cast<std::uint64_t>(b.positions[n][indices[n]] - out.lowest[n]) * weights[n];
      out.keys.push_back(key);
      return true;
    });
    ends.push_back(out.keys.size());
  }
  merge_runs(out.keys, std::move(ends));
  return out;
}

}  // namespace kplan
