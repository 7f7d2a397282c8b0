// How it works: the outer loops nest; the inner one runs in turns of `lanes * repeats` elements and a tail: a literal
// rest as straight code in ever narrower vectors, a run-time rest as a loop over single elements. All turns but the
// last few ask for lines ahead, where that helps.
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

  /// Turns of the inner loop; returns the place behind them. Lines that the processor would not ask for in time are
  /// asked for some turns before.
  Place many_turns(const Place& place, llvm::Value* trips, llvm::function_ref<void(const Place&)> turn) {
    const Loop& loop = *nest_.inner;
    const std::int64_t step = nest_.lanes * nest_.repeats;
    const Asking asking = what_to_ask_for();
    if (asking.streams.empty()) return frame_.loop(place, loop, trips, step, turn);
    auto& b = frame_.builder;
    const std::int64_t turns_ahead = std::max<std::int64_t>(1, asking.iterations_ahead / step);
    llvm::Value* first = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateSub(trips, frame_.number(turns_ahead)),
                                                 frame_.number(0));
    if (asking.is_for_far_lists) first = b.CreateSelect(frame_.lists_go_far(), first, frame_.number(0));
    const Place last = frame_.loop(place, loop, first, step, [&](const Place& at) {
      for (std::int64_t i = 0; i < step; i += asking.each)
        ask_for(asking, frame_.advanced(at, loop, turns_ahead * step + i));
      turn(at);
    });
    return frame_.loop(last, loop, b.CreateSub(trips, first), step, turn);
  }

  /// Lines of streams that are asked for ahead of the inner loop.
  struct Asking {
    struct Of {
      std::size_t stream;
      std::int64_t bytes;  ///< of one iteration, or of `each`
    };
    std::vector<Of> streams;
    std::int64_t each = 1;  ///< iterations that are asked for together
    std::int64_t iterations_ahead = 0;
    bool is_for_far_lists = false;
  };

  void ask_for(const Asking& asking, const Place& place) {
    for (const Asking::Of& of : asking.streams) {
      llvm::Value* const from = Memory(frame_, nest_, place, 1).address(of.stream, 0);
      for (std::int64_t byte = 0; byte < of.bytes; byte += line_bytes)
        frame_.prefetch(frame_.offset(from, byte), of.stream == 0);
    }
  }

  /// Elements and short runs that lie apart, so that each iteration meets other lines; of those that lists name, where
  /// the lines are hardly in a cache. Where elements lie side by side, lines of the target:
  /// those that are read the processor asks for itself.
  Asking what_to_ask_for() const {
    constexpr std::int64_t most_bytes = 256, bytes_ahead = 1024, least_ahead = 4, most_ahead = 16,
                           target_bytes_ahead = 512;
    Asking out;
    if (nest_.copy.is_run_time) return out;
    const bool is_listed = nest_.inner->dimension == list_dimension;
    std::int64_t most = 0;
    for (std::size_t s = 0; s < frame_.spec.streams.size(); ++s) {
      const std::int64_t bytes = bytes_of(s);
      if (bytes == 0 || bytes > most_bytes || !lies_apart(s)) continue;
      out.streams.push_back({s, bytes});
      most = std::max(most, bytes);
    }
    if (!out.streams.empty()) {
      out.iterations_ahead = std::clamp(bytes_ahead / most, least_ahead, most_ahead);
      out.is_for_far_lists = is_listed;
      return out;
    }
    const std::int64_t element = bytes_of(0), together = nest_.lanes * nest_.repeats;
    if (nest_.lanes == 1 || is_listed || element * together < line_bytes ||
        stride_along(frame_.spec, 0, nest_.inner->dimension) != element)
      return out;
    return {{{0, element * together}}, together, target_bytes_ahead / element};
  }

  bool lies_apart(std::size_t stream) const {
    if (nest_.inner->dimension == list_dimension) return frame_.spec.streams[stream].is_indexed;
    const std::int64_t stride = stride_along(frame_.spec, stream, nest_.inner->dimension);
    return stride != at_run_time && std::abs(stride) >= line_bytes;
  }

  /// From the first to the last that one iteration of the inner loop meets of a stream; 0: nothing, or at run time.
  std::int64_t bytes_of(std::size_t stream) const {
    const KernelSpec& spec = frame_.spec;
    std::int64_t out = 0;
    if (spec.copy_bytes != 0) {
      out = nest_.copy.factor;
    } else {
      const auto note = [&](std::int64_t offset, Scalar type) {
        out = std::max(out, offset + static_cast<std::int64_t>(size_of(type)));
      };
      for (const Instruction& in : spec.instructions)
        if (in.opcode == Opcode::load && static_cast<std::size_t>(in.stream) == stream) note(in.offset_bytes, in.type);
      for (const Output& o : spec.outputs)
        if (stream == 0) note(o.offset_bytes, spec.instructions[static_cast<std::size_t>(o.instruction)].type);
    }
    for (const Loop& loop : nest_.unrolled) {
      const std::int64_t stride = stride_along(spec, stream, loop.dimension);
      if (stride < 0) return 0;  // at run time, too
      out += stride * (loop.count.factor - 1);
    }
    return out;
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

  static constexpr std::int64_t line_bytes = 64;

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
