#pragma once
// A KernelSpec says everything about one kernel and nothing about who runs it. A kernel is a loop nest over
// one iteration space that moves elements from source streams to one target stream:
//
//   for o in 0 .. lists' length:                     the outermost dimension, present when some stream is indexed
//     for each dimension d, outermost first:
//       target element = result of the instructions over the elements of the streams
//
// A stream is an array of elements somewhere in memory: its address at one iteration is
//   base + list[o] (if indexed) + list_stride_bytes * o + sum over the dimensions of strides_bytes[d] * position[d].
// What matters for speed (strides, short extents) is literal in the spec and so constant in the code; a stride
// or an extent of `at_run_time` is read from the arguments, so that code is shared by peers and sizes.
// Specs are plain data: comparable, hashable through `key()`, printable through `to_text()`.

#include <cstdint>
#include <string>
#include <vector>

#include "plans/arithmetic.hpp"

namespace kplan::jit {

inline constexpr std::int64_t at_run_time = INT64_MIN;

/// What an instruction does.
enum class Opcode : std::uint8_t {
  load,      ///< `type` at `stream`'s element + `offset_bytes`; stream 0 is the target: what it held before
  constant,  ///< `bits`, the object representation of a `type`, low bytes first (c128: real, imaginary)
  scalar,    ///< run-time scalar number `slot`
  position,  ///< i64: run-time scalar `slot` + sum of `position_strides[d]` * position in dimension d (o does not
             ///< count)
  apply,     ///< `operation` on the operands, in the wrapping arithmetic of plans/arithmetic.hpp
};

/// One instruction; operands are the indices of earlier instructions.
struct Instruction {
  Opcode opcode = Opcode::constant;
  Operation operation = Operation::add;  ///< apply
  Scalar type = Scalar::f64;             ///< of the result
  std::int32_t a = -1, b = -1, c = -1;
  /// div, mod, ceil_div on integers: the boolean that says whether the division is wanted (-1: always). A zero
  /// divisor that is wanted makes the kernel fail; one that is not gives 0.
  std::int32_t guard = -1;
  std::int32_t stream = -1;                    ///< load
  std::int64_t offset_bytes = 0;               ///< load
  std::int32_t slot = -1;                      ///< scalar, position
  std::uint64_t bits[2] = {0, 0};              ///< constant
  std::vector<std::int64_t> position_strides;  ///< position: one per dimension
  bool operator==(const Instruction&) const = default;
};

/// What is stored into the target's element: the instruction's value at a byte offset of the element.
struct Output {
  std::int64_t offset_bytes = 0;
  std::int32_t instruction = -1;
  bool operator==(const Output&) const = default;
};

/// An entry of a stream's list. Short, since long lists come from far memory.
using ListEntry = std::uint32_t;

/// One array walked by the nest. Elements may lie at any address: no alignment beyond one byte is promised.
struct Stream {
  bool is_indexed = false;                  ///< has a list of offsets, one for each o
  std::vector<std::int64_t> strides_bytes;  ///< one per dimension; a literal or `at_run_time`
  std::int64_t list_stride_bytes = 0;       ///< what one step of o adds, a literal: the packed side of a gather
  std::int64_t list_scale_bytes = 1;        ///< bytes that an entry of the list counts, a literal > 0
  bool operator==(const Stream&) const = default;
};

struct KernelSpec {
  std::string name;  ///< readable, for listings and profilers; not part of the key

  /// Extents of the dimensions, outermost first; literals > 0 or `at_run_time` (which may be 0). At most 8.
  std::vector<std::int64_t> extents;
  /// Stream 0 is the target, the others are sources. Sources never overlap the target, unless a load names stream 0.
  std::vector<Stream> streams;

  /// A plain copy of elements of so many bytes from stream 1 to stream 0; 0 when the instructions say it.
  std::int64_t copy_bytes = 0;
  std::vector<Instruction> instructions;
  std::vector<Output> outputs;

  /// No two iterations write the same bytes of the target, so iterations may be done in any order and in
  /// vectors. When false, iterations are done in the nest's order, one after the other.
  bool is_injective = true;

  bool operator==(const KernelSpec& other) const;
  bool has_lists() const;
  /// Whether it has more than 256 instructions, those on complex numbers counted four times: then it never gets machine
  /// code, which takes a tenth of a second there, and soon seconds.
  bool is_too_long() const;

  /// A byte string equal for equal specs (names aside), different for different ones.
  std::string key() const;
  /// The nest as pseudo-code that a person who knows C reads at once.
  std::string to_text() const;
};

/// Throws InternalError when the spec is not well formed (operands out of range, wrong types, ...).
void check(const KernelSpec& spec);

/// Copies whose runs are so many bytes long can go past the caches; so can transpositions.
inline constexpr std::int64_t least_run_past_caches = 512;

/// The arguments of one call, in this order, for generated code too.
struct KernelArguments {
  std::byte* const* bases;            ///< one per stream; stream 0 first
  const ListEntry* const* lists;      ///< one per stream, null when not indexed
  std::int64_t list_length;           ///< iterations of o; ignored when no stream is indexed
  const std::int64_t* extents;        ///< one per dimension; read only where the spec says `at_run_time`
  const std::int64_t* strides_bytes;  ///< stream-major, [stream * dimensions + d]; read only where `at_run_time`
  const std::uint64_t* scalars;       ///< two words per slot: object representation, low bytes first
  /// Not 0: stores to the target may go past the caches, since it is long and not read at once.
  std::uint32_t goes_past_caches = 0;
  /// Not 0: what lists name is hardly in caches, since this call is, or is part of, a walk through much memory.
  std::uint32_t lists_go_far = 0;
};

/// Returns 0, or 1 + the number (in the nest's order, o included) of an iteration with a zero divisor; then the
/// target's contents are not specified.
using KernelFunction = std::uint64_t (*)(const KernelArguments*);

/// Runs a spec element by element, in the nest's order: the oracle of compiled and precompiled kernels. Same result as
/// `KernelFunction`.
std::uint64_t interpret(const KernelSpec& spec, const KernelArguments& arguments);

}  // namespace kplan::jit
