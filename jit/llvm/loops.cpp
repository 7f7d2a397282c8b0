// How it works: dimensions that continue each other in every stream become one loop; in copies the contiguous
// innermost ones become part of the element. Then, where iterations may go in any order, the loop with the most
// streams contiguous (the target counting double) moves innermost and is cut into lanes, and what is short and
// literal is unrolled inside the lanes.
#include "jit/llvm/loops.hpp"

#include <algorithm>

namespace kplan::jit {
namespace {

/// An access: elements of `bytes` of a stream.
struct Access {
  std::size_t stream;
  std::int64_t bytes;
};

std::vector<Access> accesses_of(const KernelSpec& spec, std::int64_t copy_bytes) {
  if (spec.copy_bytes != 0) return {{0, copy_bytes}, {1, copy_bytes}};
  std::vector<Access> out;
  auto bytes = [&](std::int32_t i) {
    return static_cast<std::int64_t>(size_of(spec.instructions[static_cast<std::size_t>(i)].type));
  };
  for (const Output& o : spec.outputs) out.push_back({0, bytes(o.instruction)});
  for (std::size_t i = 0; i < spec.instructions.size(); ++i) {
    const Instruction& in = spec.instructions[i];
    if (in.opcode == Opcode::load)
      out.push_back({static_cast<std::size_t>(in.stream), bytes(static_cast<std::int32_t>(i))});
  }
  return out;
}

/// Whether a step of `outer` is `inner_extent` steps of `inner` everywhere.
bool continues(const KernelSpec& spec, int outer, int inner, std::int64_t inner_extent) {
  auto follows = [&](std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    return a != at_run_time && b != at_run_time && !__builtin_mul_overflow(b, inner_extent, &product) && a == product;
  };
  for (std::size_t s = 0; s < spec.streams.size(); ++s) {
    if (!follows(stride_along(spec, s, outer), stride_along(spec, s, inner))) return false;
  }
  for (const Instruction& in : spec.instructions) {
    if (in.opcode != Opcode::position) continue;
    const auto& strides = in.position_strides;
    if (!follows(strides[static_cast<std::size_t>(outer)], strides[static_cast<std::size_t>(inner)])) return false;
  }
  return true;
}

std::vector<Loop> fused(const KernelSpec& spec) {
  std::vector<Loop> out;
  for (std::size_t d = 0; d < spec.extents.size(); ++d) {
    if (spec.extents[d] == 1) continue;
    const int dimension = static_cast<int>(d);
    Loop next{dimension, {}};
    if (spec.extents[d] == at_run_time) {
      next.count = {1, true, dimension};
    } else {
      next.count.factor = spec.extents[d];
      if (!out.empty() && continues(spec, out.back().dimension, dimension, spec.extents[d])) {
        out.back().dimension = dimension;
        out.back().count.factor *= spec.extents[d];
        continue;
      }
    }
    out.push_back(next);
  }
  return out;
}

/// Takes the contiguous innermost loops of a copy into its run.
Count widened_run(const KernelSpec& spec, std::vector<Loop>& loops) {
  Count run{spec.copy_bytes, false, 0};
  while (!loops.empty() && !run.is_run_time) {
    const Loop& last = loops.back();
    if (stride_along(spec, 0, last.dimension) != run.factor || stride_along(spec, 1, last.dimension) != run.factor)
      break;
    run = {run.factor * last.count.factor, last.count.is_run_time, last.count.dimension};
    loops.pop_back();
  }
  return run;
}

bool is_short(const Loop& loop, std::int64_t limit) { return !loop.count.is_run_time && loop.count.factor <= limit; }

int score(const KernelSpec& spec, const std::vector<Access>& accesses, const Loop& loop) {
  int total = 1;
  for (const Access& access : accesses) {
    const Spread spread = spread_of(stride_along(spec, access.stream, loop.dimension), access.bytes);
    const int points = spread == Spread::unit ? 4 : spread == Spread::same ? 3 : spread == Spread::near ? 2 : 0;
    total += access.stream == 0 ? 2 * points : points;
  }
  return is_short(loop, 3) ? total / 4 : total;
}

int divisions(const KernelSpec& spec) {
  return static_cast<int>(std::count_if(spec.instructions.begin(), spec.instructions.end(), [](const Instruction& in) {
    return in.opcode == Opcode::apply && divides(in.operation) && is_integer(in.type);
  }));
}

/// How many elements of the widest type fill a vector.
int full_lanes(const KernelSpec& spec, std::int64_t copy_bytes, int vector_bytes) {
  std::int64_t widest = std::max<std::int64_t>(copy_bytes, 1);
  for (const Instruction& in : spec.instructions)
    widest = std::max(widest, static_cast<std::int64_t>(size_of(in.type)));
  return static_cast<int>(std::max<std::int64_t>(1, vector_bytes / widest));
}

void choose_lanes(const KernelSpec& spec, const std::vector<Access>& accesses, LoopNest& nest, int vector_bytes) {
  const bool is_copy = spec.copy_bytes != 0;
  const std::int64_t bytes = nest.copy.factor;
  const bool is_element = is_copy && !nest.copy.is_run_time && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
  int apart = 0, target_apart = 0;
  for (const Access& access : accesses) {
    const std::int64_t stride = stride_along(spec, access.stream, nest.inner->dimension);
    const Spread spread = spread_of(stride, access.bytes);
    if (access.stream == 0) {
      target_apart += spread != Spread::unit;
    } else {
      apart += spread == Spread::apart || (spread == Spread::near && access.bytes > 8);
    }
  }
  const int steps = static_cast<int>(spec.instructions.size());
  const bool in_vectors =
      is_copy ? is_element && apart + target_apart == 0 : divisions(spec) == 0 && (target_apart == 0 || steps > 8);
  if (in_vectors) {
    nest.lanes = full_lanes(spec, is_copy ? bytes : 0, vector_bytes);
    if (apart + target_apart > 0) nest.lanes = std::min(nest.lanes, 8);
    nest.repeats = steps <= 4 && apart + target_apart == 0 ? 2 : 1;
  } else if (is_copy) {
    nest.repeats = nest.copy.is_run_time || bytes > 64 ? 1 : bytes > 32 ? 2 : bytes > 8 ? 4 : 8;
  } else {
    nest.repeats = divisions(spec) == 0 && steps <= 8 ? 4 : 1;
  }
  if (!nest.inner->count.is_run_time) {
    while (nest.lanes > 1 && nest.lanes > nest.inner->count.factor) nest.lanes /= 2;
  }
}

/// Loops that were inside the inner one, which are `outer` from `first` on. What was around it stays there: rows that
/// are walked side by side may meet in the low bits of their addresses, and then wait for each other.
void unroll_short_loops(LoopNest& nest, std::size_t first) {
  std::int64_t product = 1;
  for (std::size_t i = nest.outer.size(); i-- > first;) {
    if (nest.outer[i].dimension == list_dimension || !is_short(nest.outer[i], 4) ||
        product * nest.outer[i].count.factor > 8)
      continue;
    product *= nest.outer[i].count.factor;
    nest.unrolled.insert(nest.unrolled.begin(), nest.outer[i]);
    nest.outer.erase(nest.outer.begin() + static_cast<std::ptrdiff_t>(i));
  }
  while (nest.repeats > 1 && nest.repeats * product > 8) nest.repeats /= 2;
}

/// A copy of small elements that is contiguous along one loop in the source and along another in the target.
void find_transposition(const KernelSpec& spec, LoopNest& nest) {
  const std::int64_t bytes = nest.copy.factor;
  if (spec.copy_bytes == 0 || nest.copy.is_run_time || bytes > 16 || (bytes & (bytes - 1)) != 0) return;
  if (!nest.unrolled.empty() || nest.lanes != 1 || nest.inner->dimension == list_dimension) return;
  if (stride_along(spec, 0, nest.inner->dimension) != bytes || is_short(*nest.inner, 7)) return;
  for (std::size_t i = nest.outer.size(); i-- > 0;) {
    if (nest.outer[i].dimension == list_dimension || is_short(nest.outer[i], 7)) continue;
    if (stride_along(spec, 1, nest.outer[i].dimension) != bytes) continue;
    nest.tile = {nest.outer[i], *nest.inner};
    nest.outer.erase(nest.outer.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

}  // namespace

std::int64_t stride_along(const KernelSpec& spec, std::size_t stream, int dimension) {
  const Stream& s = spec.streams[stream];
  if (dimension != list_dimension) return s.strides_bytes[static_cast<std::size_t>(dimension)];
  return s.is_indexed ? at_run_time : s.list_stride_bytes;
}

Spread spread_of(std::int64_t stride, std::int64_t bytes) {
  if (stride == 0) return Spread::same;
  if (stride == bytes || stride == -bytes) return Spread::unit;
  if (stride == at_run_time || stride % bytes != 0) return Spread::apart;
  const std::int64_t steps = stride / bytes;
  return steps >= -4 && steps <= 4 ? Spread::near : Spread::apart;
}

LoopNest choose_loops(const KernelSpec& spec, int vector_bytes) {
  LoopNest nest;
  std::vector<Loop> loops = fused(spec);
  if (spec.copy_bytes != 0) nest.copy = widened_run(spec, loops);
  if (spec.has_lists()) loops.insert(loops.begin(), Loop{list_dimension, {1, true, list_dimension}});
  if (loops.empty()) return nest;

  const auto accesses = accesses_of(spec, nest.copy.factor);
  std::size_t chosen = loops.size() - 1;
  if (spec.is_injective) {
    const auto candidates = std::count_if(loops.begin(), loops.end(), [](const Loop& l) { return !is_short(l, 4); });
    for (std::size_t i = loops.size(); i-- > 0;) {
      // The list goes innermost only where nothing else is left to loop over.
      if (loops[i].dimension == list_dimension && candidates > 1) continue;
      if (score(spec, accesses, loops[i]) > score(spec, accesses, loops[chosen])) chosen = i;
    }
  }
  nest.inner = loops[chosen];
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(chosen));
  nest.outer = std::move(loops);
  if (!spec.is_injective) return nest;
  choose_lanes(spec, accesses, nest, vector_bytes);
  unroll_short_loops(nest, chosen);
  find_transposition(spec, nest);
  return nest;
}

}  // namespace kplan::jit
