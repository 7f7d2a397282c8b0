// How it works: loops are rows of one table with a column for each track, so dropping, fusing and reordering them is
// the same for addresses, positions and the iteration's number. The innermost loop is chosen by the bytes that one
// of its turns brings near, counted in parts of cache lines, and by how many turns share the work for a row.
#include "jit/precompiled/numeric_nest.hpp"

#include <algorithm>

namespace kplan::jit {

NumericNest::NumericNest(const KernelSpec& spec, const KernelArguments& arguments) {
  const std::size_t rank = spec.extents.size();
  track_count = stream_count = static_cast<int>(spec.streams.size());
  if (spec.has_lists()) {
    list_loop = loop_count++;
    extents[0] = arguments.list_length;
  }
  for (std::size_t d = 0; d < rank; ++d)
    extents[loop_count++] = spec.extents[d] == at_run_time ? arguments.extents[d] : spec.extents[d];
  for (int l = 0; l < loop_count; ++l) is_empty = is_empty || extents[l] <= 0;
  for (std::size_t s = 0; s < spec.streams.size(); ++s) {
    const Stream& stream = spec.streams[s];
    starts[s] = reinterpret_cast<std::uintptr_t>(arguments.bases[s]);
    if (stream.is_indexed) lists[s] = {arguments.lists[s], static_cast<std::uint64_t>(stream.list_scale_bytes)};
    int loop = 0;
    if (list_loop == 0) strides[loop++][s] = static_cast<std::uint64_t>(stream.list_stride_bytes);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t stride = stream.strides_bytes[d];
      strides[loop++][s] =
          static_cast<std::uint64_t>(stride == at_run_time ? arguments.strides_bytes[s * rank + d] : stride);
    }
  }
}

void NumericNest::add_number(std::uint64_t start, const std::int64_t* strides_by_dimension, std::uint64_t list_stride) {
  const int t = track_count++;
  starts[t] = start;
  for (int l = 0; l < loop_count; ++l) {
    if (l == list_loop) strides[l][t] = list_stride;
    else strides[l][t] = static_cast<std::uint64_t>(*strides_by_dimension++);
  }
}

void NumericNest::add_iteration() {
  std::int64_t weights[most_loops];
  std::uint64_t weight = 1;
  const int first = list_loop == 0 ? 1 : 0;
  for (int l = loop_count; l-- > first;) {
    weights[l - first] = static_cast<std::int64_t>(weight);
    weight *= static_cast<std::uint64_t>(extents[l]);
  }
  add_number(0, weights, weight);
}

void NumericNest::drop(int loop) {
  if (loop < list_loop) --list_loop;
  else if (loop == list_loop) list_loop = -1;
  --loop_count;
  for (int l = loop; l < loop_count; ++l) {
    extents[l] = extents[l + 1];
    std::copy_n(strides[l + 1], track_count, strides[l]);
  }
}

/// Whether a turn of the loop is all turns of the next one, in every track.
bool NumericNest::continues(int loop) const {
  if (loop == list_loop || loop + 1 == list_loop) return false;
  for (int t = 0; t < track_count; ++t) {
    if (strides[loop][t] != strides[loop + 1][t] * static_cast<std::uint64_t>(extents[loop + 1])) return false;
  }
  return true;
}

void NumericNest::simplify() {
  if (is_empty) return;
  for (int l = loop_count; l-- > 0;) {
    if (extents[l] != 1) continue;
    for (int t = 0; t < track_count && l == list_loop; ++t) {
      if (lists[t]) starts[t] += lists[t][0];
    }
    drop(l);
  }
  for (int l = loop_count - 1; l-- > 0;) {
    if (!continues(l)) continue;
    extents[l + 1] *= extents[l];
    drop(l);
  }
  if (loop_count > 0) return;
  loop_count = 1;
  extents[0] = 1;
  std::fill_n(strides[0], track_count, std::uint64_t(0));
}

std::int64_t NumericNest::take_run(std::int64_t bytes) {
  while (inner() >= 0 && inner() != list_loop) {
    const auto run = static_cast<std::uint64_t>(bytes);
    const bool is_one = extents[inner()] == 1;
    if (!is_one && (strides[inner()][0] != run || strides[inner()][1] != run)) break;
    bytes *= extents[inner()];
    if (loop_count == 1) {
      extents[0] = 1;
      break;
    }
    drop(inner());
  }
  return bytes;
}

void NumericNest::choose_inner() {
  constexpr std::uint64_t line_bytes = 64;
  constexpr std::uint64_t row_bytes = 400;  // what starting a row costs, as if it were bytes
  auto cost = [&](int loop) {
    std::uint64_t total = row_bytes / static_cast<std::uint64_t>(extents[loop]);
    for (int t = 0; t < stream_count; ++t) {
      const std::uint64_t stride = strides[loop][t];
      const bool is_indexed = loop == list_loop && lists[t];
      const std::uint64_t near = std::min({stride, 0 - stride, line_bytes});
      total += (is_indexed ? line_bytes : near) * (t == 0 ? 2 : 1);
    }
    return total;
  };
  if (is_empty) return;
  int best = inner();
  for (int l = inner(); l-- > 0;) {
    if (cost(l) < cost(best)) best = l;
  }
  if (best == inner()) return;
  for (int l = best; l < inner(); ++l) {
    std::swap(extents[l], extents[l + 1]);
    std::swap_ranges(strides[l], strides[l] + track_count, strides[l + 1]);
  }
  if (list_loop == best) list_loop = inner();
  else if (list_loop > best) --list_loop;
}

}  // namespace kplan::jit
