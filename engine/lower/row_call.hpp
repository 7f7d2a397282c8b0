#pragma once
// The rows of a where-list as code: which spec finds them, and what it is given at every run.

#include <optional>
#include <span>
#include <vector>

#include "engine/analysis/bound_plan.hpp"
#include "engine/analysis/column_program.hpp"
#include "jit/row_spec.hpp"

namespace kplan {

/// A number that the code is given.
struct RowScalar {
  enum class Kind : std::uint8_t { rank, size, parameter, extent, stride, element_count, given } kind = Kind::given;
  int number = 0;     ///< of the parameter or buffer
  int dimension = 0;  ///< extent, stride
  bool operator==(const RowScalar&) const = default;
};

struct RowCall {
  jit::RowSpec spec;
  std::vector<RowScalar> scalars;  ///< by slot; at most one is `given`, by who calls
  std::vector<int> buffers;        ///< by array, whose contents are read; -1: a table of who calls
  std::int64_t most_turns = 0;     ///< of loops: with these no walk through the where-list takes too many steps

  /// What the arguments are, for listings: `s0: rank, s1: n; array0: list`.
  std::string arguments_text(const PlanModel& plan) const;
};

/// The element or integer at one end.
struct RowEnd {
  const ColumnProgram* program = nullptr;
  std::int64_t unit = 1, offset = 0;  ///< the first element's number times `unit`, and `offset`, is what is wanted
};

/// The innermost loop of a where-list, a range by ones, all turns of which are one row: the elements that are told lie
/// one after the other in a dimension of their buffer.
struct RowLoop {
  int variable = -1;
  /// The end that decides has any element or integer in each turn, and columns of its own for them; else they lie so at
  /// both ends.
  bool is_listed = false;
};

/// What is wanted of the environments of one reduction, or of several that have the same ranks at both ends.
struct RowWish {
  std::vector<RowEnd> ends;  ///< one, or several of single elements or integers
  bool has_counts = false;   ///< rows are told with their numbers of elements; else these are 1
  std::vector<int> told;     ///< variables that the other end uses
  std::size_t reduction = 0;
  std::optional<RowLoop> loop = {};  ///< of all wishes; with counts
};

/// The environments in which this rank decides (as sender of a push, or receiver of a pull), one part a wish; its
/// columns: the rank at the other end, where the ends' elements begin in their buffers (or the integers), the words of
/// the told variables (of a loop's, in its first turn), the number of elements where there are counts. Of a loop that
/// is listed there are two parts a wish, and the second one has the ends' columns, an entry for each turn. Nothing
/// where a part of the where-list has no steps.
std::optional<RowCall> lower_decided_rows(const BoundPlan& bound, const Statement& s, std::span<const RowWish> wishes);

/// Rows that were told, of one end, by a table of 32-bit words, column by column: array k is column k, the given scalar
/// is the number of rows. Columns of the one part: where the end's elements begin (or the integer); and the number of
/// elements, if there are counts or the end is of runs. Leaves where that is not as told, or one of them is outside.
std::optional<RowCall> lower_told_rows(const BoundPlan& bound, const Statement& s, const RowWish& wish);

}  // namespace kplan
