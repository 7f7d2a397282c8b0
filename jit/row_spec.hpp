#pragma once
// A RowSpec says how rows of integers are found: loops over ranges, each inside all before it, and in the innermost
// one, for every part, a row of values that goes to the part's columns:
//
//   for value in a .. b by c:                  `range`
//     value = ...                              all others; `filter` may leave out the rest of the turn
//     for each part:
//       value = ...                            its steps; `filter` may leave out the row
//       columns[..][rows++] = values
//
// A part that `is_outside` has its row before the innermost loop instead, where that has any turns.
//
// All values are 64-bit integers; booleans are 0 and 1. Whatever is not plain (an overflow, a divisor that is not
// positive, a value outside its bounds) makes the whole call leave, and someone else must find out what it means.
// Specs are plain data: comparable, hashable through `key()`, printable through `to_text()`.

#include <cstdint>
#include <string>
#include <vector>

#include "plans/arithmetic.hpp"

namespace kplan::jit {

/// What a step reads: a literal, a number of the arguments, or the value of an earlier step.
struct RowOperand {
  enum class Kind : std::uint8_t { literal, scalar, value } kind = Kind::literal;
  std::int64_t number = 0;
  bool operator==(const RowOperand&) const = default;

  static RowOperand literal(std::int64_t v) { return {Kind::literal, v}; }
  static RowOperand scalar(std::size_t slot) { return {Kind::scalar, static_cast<std::int64_t>(slot)}; }
};

/// What a step does.
enum class RowOpcode : std::uint8_t {
  apply,   ///< a `operation` b: add, sub, mul, div, mod (floored), min, max, bit_and, bit_or and comparisons
  choose,  ///< a != 0 ? b : c
  wrap,    ///< a as a `type`, an integer of fewer bits
  offset,  ///< a + b * c, wrapping
  load,    ///< the integer of `type` at byte a of array number `array`
  range,   ///< a loop: a, a + c, ... below b; leaves unless c > 0
  filter,  ///< leaves out the rest of the turn, or of the part's row, unless a != 0. No value.
  inside,  ///< leaves unless 0 <= a < b. No value.
};

struct RowStep {
  RowOpcode opcode = RowOpcode::apply;
  Operation operation = Operation::add;  ///< apply
  Scalar type = Scalar::i64;             ///< wrap, load
  RowOperand a = {}, b = {}, c = {};
  std::int32_t array = -1;  ///< load
  bool operator==(const RowStep&) const = default;
};

/// One row for each turn of the innermost loop, or for all of them.
struct RowPart {
  std::vector<RowStep> steps;       ///< no ranges
  std::vector<RowOperand> columns;  ///< what the row holds
  bool is_outside = false;          ///< of the innermost loop: reads what is before that
  bool operator==(const RowPart&) const = default;
};

/// The value of a step has the step's number, those of the parts' behind `steps`, part by part. A part reads values of
/// `steps` and its own.
struct RowSpec {
  std::string name;  ///< readable, for listings and profilers; not part of the key
  std::vector<RowStep> steps;
  std::vector<RowPart> parts;

  bool operator==(const RowSpec& other) const { return steps == other.steps && parts == other.parts; }
  std::size_t column_count() const;  ///< of all parts
  /// The number of its step; that of all steps where there is no loop.
  std::size_t innermost_loop() const {
    for (std::size_t n = steps.size(); n > 0; --n)
      if (steps[n - 1].opcode == RowOpcode::range) return n - 1;
    return steps.size();
  }
  /// The number of a part's first value.
  std::size_t first_value_of(std::size_t part) const {
    std::size_t out = steps.size();
    for (std::size_t p = 0; p < part; ++p) out += parts[p].steps.size();
    return out;
  }
  /// Whether it has more than 1,024 steps: then it never gets machine code, as long kernels do not.
  bool is_too_long() const;

  /// A byte string equal for equal specs (names aside), different for different ones.
  std::string key() const;
  /// The loops as pseudo-code that a person who knows C reads at once.
  std::string to_text() const;
};

/// Throws InternalError when the spec is not well formed.
void check(const RowSpec& spec);

/// The arguments of one call, in this order, for generated code too.
struct RowArguments {
  const std::int64_t* scalars;     ///< one per slot
  const std::byte* const* arrays;  ///< whose elements may lie at any address
  std::int64_t* const* columns;    ///< part by part
  const std::int64_t* room;        ///< by part: rows that its columns have room for
  std::int64_t* rows;              ///< by part: written when the call returns `done`
  std::int64_t most_turns;         ///< of all loops together; leaves where there would be more
};

enum RowsOutcome : std::uint64_t { rows_done, rows_left, rows_out_of_room };

using RowFunction = RowsOutcome (*)(const RowArguments*);

}  // namespace kplan::jit
