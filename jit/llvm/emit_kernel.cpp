// How it works: the outer loops nest; the inner one runs in turns of `lanes * repeats` elements and a tail: a literal
// rest as straight code in ever narrower vectors, a run-time rest as a loop over single elements.
#include "jit/llvm/emit_kernel.hpp"

#include <algorithm>
#include <cstdlib>

#include "jit/llvm/elements.hpp"

namespace kplan::jit {
namespace {

class KernelEmitter {
 public:
  KernelEmitter(Frame& frame, const LoopNest& nest, int vector_bytes)
      : frame_(frame), nest_(nest), vector_bytes_(vector_bytes) {}

  void outer(std::size_t depth, const Place& place) {
    if (depth == nest_.outer.size()) return inner(place);
    const Loop& loop = nest_.outer[depth];
    frame_.loop(place, loop, frame_.count(loop.count), 1, [&](const Place& at) {
      Place here = at;
      if (loop.dimension == list_dimension) add_list_entries(here);
      outer(depth + 1, here);
    });
  }

 private:
  void add_list_entries(Place& place) {
    for (std::size_t s = 0; s < frame_.spec.streams.size(); ++s) {
      if (!frame_.spec.streams[s].is_indexed) continue;
      place.pointer(s) = frame_.offset(place.pointer(s), frame_.list_entry(s, place.list_position()));
    }
  }

  void inner(const Place& place) {
    if (!nest_.tile.empty()) return emit_transposition(frame_, nest_, place);
    if (!nest_.inner) return unrolled(0, place, 1);
    const Loop& loop = *nest_.inner;
    const std::int64_t step = nest_.lanes * nest_.repeats;
    auto turn = [&](const Place& at) { turns(at, nest_.lanes, nest_.repeats); };
    if (!loop.count.is_run_time) {
      const std::int64_t trips = loop.count.factor / step, rest = loop.count.factor % step;
      Place at = place;
      if (trips == 1) {
        turn(at);
        at = frame_.advanced(at, loop, step);
      } else if (trips > 1) {
        at = many_turns(at, frame_.number(trips), turn);
      }
      return literal_rest(at, rest);
    }
    if (step == 1) {
      many_turns(place, frame_.count(loop.count), turn);
      return;
    }
    const Split split = frame_.split(loop.count, step);
    const Place at = many_turns(place, split.trips, turn);
    frame_.loop(at, loop, split.rest, 1, [&](const Place& here) { turns(here, 1, 1); });
  }

  /// Turns of the inner loop; returns the place behind them. Where each element of the target is in a line of its own,
  /// lines that are not at hand are asked for some turns before: stores wait for them one after the other, loads do
  /// not.
  Place many_turns(const Place& place, llvm::Value* trips, llvm::function_ref<void(const Place&)> turn) {
    constexpr std::int64_t elements_ahead = 16;
    const Loop& loop = *nest_.inner;
    const std::int64_t step = nest_.lanes * nest_.repeats;
    if (!stores_line_by_line()) return frame_.loop(place, loop, trips, step, turn);
    auto& b = frame_.builder;
    const std::int64_t turns_ahead = std::max<std::int64_t>(1, elements_ahead / step);
    llvm::Value* const first = b.CreateBinaryIntrinsic(
        llvm::Intrinsic::smax, b.CreateSub(trips, frame_.number(turns_ahead)), frame_.number(0));
    const Place last = frame_.loop(place, loop, first, step, [&](const Place& at) {
      for (std::int64_t i = 0; i < step; ++i)
        frame_.prefetch_target(frame_.advanced(at, loop, turns_ahead * step + i).pointer(0));
      turn(at);
    });
    return frame_.loop(last, loop, b.CreateSub(trips, first), step, turn);
  }

  bool stores_line_by_line() const {
    constexpr std::int64_t longest_prefetched = 16, line_bytes = 64;
    if (frame_.spec.copy_bytes == 0 || !frame_.spec.is_injective || nest_.lanes > 1 || !nest_.unrolled.empty())
      return false;
    if (nest_.copy.is_run_time || nest_.copy.factor > longest_prefetched || nest_.inner->dimension == list_dimension)
      return false;
    const std::int64_t stride = stride_along(frame_.spec, 0, nest_.inner->dimension);
    return stride != at_run_time && std::abs(stride) >= line_bytes;
  }

  void literal_rest(Place at, std::int64_t rest) {
    for (int lanes = nest_.lanes; rest > 0; lanes /= 2) {
      while (rest >= lanes) {
        unrolled(0, at, lanes);
        at = frame_.advanced(at, *nest_.inner, lanes);
        rest -= lanes;
      }
    }
  }

  void turns(const Place& place, int lanes, int repeats) {
    for (int i = 0; i < repeats; ++i) unrolled(0, frame_.advanced(place, *nest_.inner, std::int64_t(i) * lanes), lanes);
  }

  void unrolled(std::size_t depth, const Place& place, int lanes) {
    if (depth < nest_.unrolled.size()) {
      const Loop& loop = nest_.unrolled[depth];
      for (std::int64_t i = 0; i < loop.count.factor; ++i) unrolled(depth + 1, frame_.advanced(place, loop, i), lanes);
    } else if (frame_.spec.copy_bytes != 0) {
      emit_copies(frame_, nest_, place, lanes, vector_bytes_);
    } else {
      emit_elements(frame_, nest_, place, lanes);
    }
  }

  Frame& frame_;
  const LoopNest& nest_;
  int vector_bytes_;
};

}  // namespace

llvm::Function* emit_kernel(llvm::Module& module, const KernelSpec& spec, int vector_bytes) {
  Frame frame(module, spec);
  const LoopNest nest = choose_loops(spec, vector_bytes);
  KernelEmitter(frame, nest, vector_bytes).outer(0, frame.start());
  frame.finish();
  return frame.function;
}

}  // namespace kplan::jit
