#pragma once
// What a block program is made of: loops over the elements of one block, one function for each operation and type.
// Values of a block lie one after the other in a slot; booleans are bytes 0 or 1. A complex number is two planes,
// all real parts and then, `plane` elements further on, all imaginary parts.

#include "jit/precompiled/numeric_nest.hpp"
#include "plans/arithmetic.hpp"

namespace kplan::jit {

/// The slots of one step, and how many elements are in them.
struct BlockOperands {
  std::byte* out;
  const std::byte *a, *b, *c;
  const std::byte* guard;  ///< null: every division is wanted
  int count;
  int plane;
};

/// Computes a step's elements. Returns the first one with a zero divisor that is wanted, or `count`.
using BlockFunction = int (*)(const BlockOperands&);

/// Moves elements between a slot and an array: `count` of them, `stride` bytes apart, plus the list's entries if there
/// is one. `at` is the first one's address.
using BlockMove = void (*)(std::byte* slot, std::uint64_t at, std::uint64_t stride, TrackList list, int count);

/// The function of an operation; operand and result types as `check` wants them. Complex selections and conversions go
/// plane by plane, with the types of the parts; complex to boolean goes at once.
BlockFunction block_function(Operation op, Scalar operand_type, Scalar result_type);

BlockFunction integer_function(Operation op, Scalar type);
BlockFunction real_function(Operation op, Scalar type);
BlockFunction complex_function(Operation op, Scalar type);
BlockFunction conversion_function(Scalar from, Scalar to);

/// Loads and stores of so many bytes: 1, 2, 4 or 8.
BlockMove block_load(std::size_t bytes);
BlockMove block_store(std::size_t bytes);
/// Loads bytes as booleans: whatever is not 0 is 1.
BlockMove block_load_boolean();
/// Writes the i64 numbers at, at + stride, ...
BlockMove block_count();

}  // namespace kplan::jit
