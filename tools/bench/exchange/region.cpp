// How it works: plain arithmetic on loops; nothing here is timed.
#include "tools/bench/exchange/region.hpp"

#include <algorithm>
#include <numeric>

namespace kplan::bench {

std::int64_t Array::element_count() const {
  std::int64_t out = 1;
  for (const std::int64_t extent : shape) out *= extent;
  return out;
}

std::int64_t Nest::element_count() const {
  std::int64_t out = 1;
  for (const Loop& loop : loops) out *= loop.count;
  return out;
}

Nest box(const Array& array, int number, std::vector<std::int64_t> starts, std::vector<std::int64_t> extents) {
  Nest out{number, 0, {}, starts, extents};
  out.loops.resize(extents.size());
  std::int64_t stride = 1;
  for (std::size_t d = extents.size(); d-- > 0; stride *= array.shape[d]) {
    out.loops[d] = {extents[d], stride};
    out.first += starts[d] * stride;
  }
  return out;
}

Nest simplified(Nest nest) {
  Nest same = nest;
  simplify_together(nest, same);
  return nest;
}

bool simplify_together(Nest& a, Nest& b) {
  if (!std::ranges::equal(a.loops, b.loops, {}, &Loop::count, &Loop::count)) return false;
  std::vector<Loop> of_a, of_b;
  for (std::size_t d = 0; d < a.loops.size(); ++d) {
    const Loop &x = a.loops[d], &y = b.loops[d];
    if (x.count == 1) continue;
    if (!of_a.empty() && of_a.back().stride == x.count * x.stride && of_b.back().stride == y.count * y.stride) {
      of_a.back() = {of_a.back().count * x.count, x.stride};
      of_b.back() = {of_b.back().count * y.count, y.stride};
    } else {
      of_a.push_back(x);
      of_b.push_back(y);
    }
  }
  a.loops = std::move(of_a);
  b.loops = std::move(of_b);
  return true;
}

std::int64_t element_count(const Region& region) {
  std::int64_t out = 0;
  for (const Piece& piece : region) {
    if (const auto* nest = std::get_if<Nest>(&piece)) out += nest->element_count();
    else {
      const auto& list = std::get<IndexList>(piece);
      out += static_cast<std::int64_t>(list.indices.size()) * list.block;
    }
  }
  return out;
}

namespace {

/// The greatest length that divides all runs of consecutive indices but the last.
std::int64_t run_length(const std::vector<std::int32_t>& indices) {
  std::int64_t out = 0, run = 0;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    ++run;
    if (k + 1 < indices.size() && indices[k + 1] == indices[k] + 1) continue;
    if (k + 1 < indices.size() || out == 0) out = std::gcd(out, run);
    if (out == 1) return 1;
    run = 0;
  }
  return std::max<std::int64_t>(out, 1);
}

}  // namespace

Region in_runs(const Region& region) {
  Region out;
  for (const Piece& piece : region) {
    const auto* list = std::get_if<IndexList>(&piece);
    const std::int64_t length = list != nullptr && list->unit == list->block ? run_length(list->indices) : 1;
    if (length == 1) {
      out.push_back(piece);
      continue;
    }
    const auto count = static_cast<std::int64_t>(list->indices.size());
    IndexList runs{list->array, {}, list->unit, list->offset, list->block * static_cast<int>(length)};
    for (std::int64_t k = 0; k + length <= count; k += length)
      runs.indices.push_back(list->indices[static_cast<std::size_t>(k)]);
    const std::int64_t left = count % length;
    IndexList rest{list->array, {}, list->unit, list->offset, list->block * static_cast<int>(left)};
    if (left > 0) rest.indices.push_back(list->indices[static_cast<std::size_t>(count - left)]);
    out.emplace_back(std::move(runs));
    if (left > 0) out.emplace_back(std::move(rest));
  }
  return out;
}

Run contiguous_run(const Region& region) {
  if (region.size() != 1 || !std::holds_alternative<Nest>(region[0])) return {};
  const Nest nest = simplified(std::get<Nest>(region[0]));
  const bool is_contiguous = nest.loops.empty() || (nest.loops.size() == 1 && nest.loops[0].stride == 1);
  return is_contiguous ? Run{nest.array, nest.first} : Run{};
}

std::vector<Element> elements_of(const Region& region) {
  std::vector<Element> out;
  out.reserve(static_cast<std::size_t>(element_count(region)));
  for (const Piece& piece : region) {
    if (const auto* list = std::get_if<IndexList>(&piece)) {
      for (const std::int64_t index : list->indices)
        for (int k = 0; k < list->block; ++k) out.push_back({list->array, index * list->unit + list->offset + k});
      continue;
    }
    const auto& nest = std::get<Nest>(piece);
    if (nest.element_count() == 0) continue;
    std::vector<std::int64_t> at(nest.loops.size(), 0);
    for (std::int64_t number = nest.first;;) {
      out.push_back({nest.array, number});
      std::size_t d = nest.loops.size();
      for (; d > 0; --d) {
        const Loop& loop = nest.loops[d - 1];
        number += loop.stride;
        if (++at[d - 1] < loop.count) break;
        number -= loop.count * loop.stride;
        at[d - 1] = 0;
      }
      if (d == 0) break;
    }
  }
  return out;
}

}  // namespace kplan::bench
