// How it works: rows of the nest are loaded into the block one behind the other until it is full, and what each row's
// target is is noted; then all steps run over the block, and the rows are stored. So a nest with short rows pays for
// the steps once a block, too. Where iterations may meet in the target, what depends on it is done in windows that
// cannot meet: a part of a row whose elements are apart, or else one element.
#include <algorithm>
#include <bit>
#include <cstring>

#include "jit/precompiled/block_program.hpp"

namespace kplan::jit {
namespace {

/// A part of a row: elements `first` on of the block, and their target.
struct Segment {
  int first, count;
  std::uint64_t target;
  TrackList list;
};

class Run {
 public:
  Run(const BlockProgram& program, const KernelSpec& spec, const NumericNest& nest)
      : program_(program),
        nest_(nest),
        row_strides_(nest.strides[nest.inner()]),
        window_(window_of(program, spec, nest)) {}

  std::uint64_t operator()(const KernelArguments& arguments) {
    fill(arguments);
    for_each_row(nest_, [this](const std::uint64_t* at) { return row(at); });
    if (failed_ == 0) flush();
    return failed_;
  }

 private:
  /// How many elements of a row can be loaded, computed and stored together.
  static int window_of(const BlockProgram& program, const KernelSpec& spec, const NumericNest& nest) {
    const bool in_order = !spec.is_injective && (!program.ordered_loads.empty() || program.stores.size() > 1);
    if (!in_order) return program.block;
    const std::uint64_t stride = nest.strides[nest.inner()][0];
    const std::uint64_t apart = std::min(stride, 0 - stride);
    const bool is_apart =
        !nest.inner_list(0) && apart >= static_cast<std::uint64_t>(program.target_last - program.target_first);
    return is_apart ? program.block : 1;
  }

  std::byte* place(const Slot& slot, int element) { return scratch_ + slot.offset + element * slot.bytes; }

  void fill(const KernelArguments& arguments) {
    std::int64_t total = 1;
    for (int l = 0; l < nest_.loop_count && total < program_.block; ++l)
      total *= std::min<std::int64_t>(nest_.extents[l], program_.block);
    const int count = static_cast<int>(std::min<std::int64_t>(total, program_.block));
    for (const FillStep& step : program_.fills) {
      std::uint64_t bits = step.bits;
      if (step.scalar_slot >= 0) {
        const auto* scalar = reinterpret_cast<const std::byte*>(arguments.scalars + 2 * step.scalar_slot);
        std::memcpy(&bits, scalar + step.at, static_cast<std::size_t>(step.slot.bytes));
      }
      if (step.is_boolean) bits = (bits & 0xff) != 0;
      // As the row of an array that does not move.
      block_load(static_cast<std::size_t>(step.slot.bytes))(place(step.slot, 0),
                                                            reinterpret_cast<std::uintptr_t>(&bits), 0, {}, count);
    }
  }

  bool row(const std::uint64_t* at) {
    const std::int64_t extent = nest_.extents[nest_.inner()];
    for (std::int64_t done = 0; done < extent;) {
      const int count = static_cast<int>(std::min<std::int64_t>(extent - done, program_.block - filled_));
      const auto turns = static_cast<std::uint64_t>(done);
      const auto list = [&](int track) { return nest_.inner_list(track).from(done); };
      for (const MoveStep& step : program_.loads) {
        const std::uint64_t stride = row_strides_[step.track];
        step.move(place(step.slot, filled_), at[step.track] + stride * turns + step.offset_bytes, stride,
                  list(step.track), count);
      }
      segments_[segment_count_++] = {filled_, count, at[0] + row_strides_[0] * turns, list(0)};
      filled_ += count;
      done += count;
      if (filled_ == program_.block && !flush()) return false;
    }
    return true;
  }

  /// Computes and stores the block; false when a division failed.
  bool flush() {
    if (!apply(program_.applies, 0, filled_)) return false;
    for (int s = 0; s < segment_count_; ++s) {
      const Segment& segment = segments_[s];
      for (int i = 0; i < segment.count; i += window_) {
        if (!update(segment, i, std::min(window_, segment.count - i))) return false;
      }
    }
    filled_ = segment_count_ = 0;
    return true;
  }

  /// The ordered steps and the stores of `count` elements of a segment.
  bool update(const Segment& segment, int from, int count) {
    const std::uint64_t stride = row_strides_[0];
    const std::uint64_t target = segment.target + stride * static_cast<std::uint64_t>(from);
    const TrackList list = segment.list.from(from);
    const int first = segment.first + from;
    for (const MoveStep& step : program_.ordered_loads)
      step.move(place(step.slot, first), target + step.offset_bytes, stride, list, count);
    if (!apply(program_.ordered_applies, first, count)) return false;
    for (const MoveStep& step : program_.stores)
      step.move(place(step.slot, first), target + step.offset_bytes, stride, list, count);
    return true;
  }

  bool apply(const std::vector<ApplyStep>& steps, int first, int count) {
    for (const ApplyStep& step : steps) {
      auto operand = [&](const Slot& slot) { return slot.offset < 0 ? nullptr : place(slot, first); };
      const BlockOperands operands{operand(step.out),   operand(step.a), operand(step.b), operand(step.c),
                                   operand(step.guard), count,           program_.block};
      const int done = step.function(operands);
      if (done == count) continue;
      std::uint64_t iteration = 0;
      std::memcpy(&iteration, place(program_.iteration, first + done), sizeof iteration);
      failed_ = iteration + 1;
      return false;
    }
    return true;
  }

  const BlockProgram& program_;
  const NumericNest& nest_;
  const std::uint64_t* row_strides_;
  int window_;
  int filled_ = 0, segment_count_ = 0;
  std::uint64_t failed_ = 0;
  Segment segments_[256];
  alignas(64) std::byte scratch_[BlockProgram::scratch_bytes];
};

}  // namespace

std::uint64_t run(const BlockProgram& program, const KernelSpec& spec, const KernelArguments& arguments) {
  NumericNest nest(spec, arguments);
  if (nest.is_empty) return 0;
  for (const NumberTrack& number : program.numbers) {
    const std::uint64_t start =
        number.scalar_slot >= 0 ? arguments.scalars[2 * static_cast<std::size_t>(number.scalar_slot)] : 0;
    nest.add_number(start, number.strides.data(), 0);
  }
  if (program.counts_iterations) nest.add_iteration();
  nest.simplify();
  if (spec.is_injective) nest.choose_inner();
  return Run(program, spec, nest)(arguments);
}

}  // namespace kplan::jit
