#pragma once
// A spec's instructions as steps over blocks of elements: which functions, on which slots of a scratch memory. Made
// once for a spec, read by any number of threads.

#include <optional>
#include <vector>

#include "jit/precompiled/block_operations.hpp"
#include "jit/precompiled/numeric_nest.hpp"

namespace kplan::jit {

/// Where the values of one plane of an instruction lie: `offset` bytes into the scratch, `bytes` for each element.
struct Slot {
  std::int32_t offset = -1;
  std::int32_t bytes = 0;
};

/// Loads a slot from a track of the nest, or stores it there.
struct MoveStep {
  BlockMove move;
  int track;
  std::uint64_t offset_bytes;
  Slot slot;
};

/// The same value in all elements: `bits`, or a run-time scalar's word from byte `at` on.
struct FillStep {
  Slot slot;
  int scalar_slot = -1;  ///< -1: the constant
  int at = 0;
  bool is_boolean = false;
  std::uint64_t bits = 0;
};

struct ApplyStep {
  BlockFunction function;
  Slot out, a, b, c, guard;
};

/// A number that moves along the nest: a position instruction.
struct NumberTrack {
  int scalar_slot;
  std::vector<std::int64_t> strides;
};

struct BlockProgram {
  static constexpr int scratch_bytes = 32 * 1024;

  int block = 0;  ///< elements of a block, a multiple of 16
  std::vector<NumberTrack> numbers;
  bool counts_iterations = false;  ///< the last track is the iteration's number, in the slot below
  Slot iteration;

  std::vector<FillStep> fills;     ///< once a call
  std::vector<MoveStep> loads;     ///< once a row, into the block
  std::vector<ApplyStep> applies;  ///< once a block
  /// What depends on the target of a kernel whose iterations may meet there: it is done in their order, after the rest.
  std::vector<MoveStep> ordered_loads;
  std::vector<ApplyStep> ordered_applies;
  std::vector<MoveStep> stores;
  /// The bytes of the target's element that are touched, from its address on.
  std::int64_t target_first = 0, target_last = 0;

  /// Nothing when the spec is too large for the scratch memory or the nest's tracks.
  static std::optional<BlockProgram> make(const KernelSpec& spec);
};

/// Runs the program. Allocates nothing. Returns what `KernelFunction` returns.
std::uint64_t run(const BlockProgram& program, const KernelSpec& spec, const KernelArguments& arguments);

}  // namespace kplan::jit
