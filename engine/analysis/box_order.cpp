#include "engine/analysis/box_order.hpp"

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

}  // namespace kplan
