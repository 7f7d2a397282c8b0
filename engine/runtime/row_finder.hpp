#pragma once
// Where the elements of rows are: of those that this rank's environments make, at the end that decides, and of those
// that others have told it, at the other end. By machine code or, where there is none or something is not plain, by
// column programs.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/analysis/enumeration.hpp"
#include "engine/runtime/arrived_rows.hpp"
#include "engine/runtime/native_reduction.hpp"
#include "engine/runtime/ready_rows.hpp"
#include "engine/runtime/row_letters.hpp"

namespace kplan {

/// How the rows of one reduction are found.
struct PartRows {
  /// What one end of it evaluates: the place, an element, or an integer.
  struct End {
    ExprPtr expression;
    std::optional<ColumnProgram> program;
    /// Of an element: where it lies is its number times `unit`, and `offset`: bytes in the buffer, but numbers of
    /// elements where these go to a list.
    std::int64_t unit = 1, offset = 0;
    RowSteps steps;  ///< of an element; of integers rows have one

    bool is_element() const { return expression->kind == ExprKind::element; }
    /// The buffer's memory; null for integers.
    std::byte* base(const std::vector<BoundMemory>& memory) const {
      return is_element() ? memory[static_cast<std::size_t>(expression->id)].base : nullptr;
    }
    void scale(std::int64_t* firsts, std::size_t count) const {
      for (std::size_t row = 0; row < count; ++row) firsts[row] = firsts[row] * unit + offset;
    }
  };

  const Reduction* reduction = nullptr;
  RowForm form;
  std::vector<int> told;          ///< variables that the other end uses
  std::size_t turn = 0;           ///< where rows are loops: which of them is that of the loop
  End near, far;                  ///< of the end that knows the pattern, of the other
  bool are_far_single = false;    ///< rows have one element each at the other end
  std::optional<ReadyRows> code;  ///< finds the rows that have come; null where a column program must
  /// The first part of the same rows whose elements of the far end lie like these here: this one, or one before it.
  std::size_t far_firsts = 0;

  /// Not just copied: values go to elements by lists.
  bool is_update() const { return !reduction->is_assign || reduction->value_type != reduction->place_type; }
};

class RowFinder {
 public:
  /// For a statement that goes by rows, as its where-list is walked. Both must live as long, and what changes in
  /// `bound` from run to run is seen. `wait`: for machine code; throws CompilerError then.
  RowFinder(const BoundPlan& bound, const Statement& s, jit::Wait wait);

  const std::vector<PartRows>& parts() const { return parts_; }  ///< by reduction
  const std::optional<RowLoop>& loop() const { return loop_; }   ///< whose turns are one row
  /// What rows are found by, and what each call is for; for listings.
  std::vector<std::pair<std::string, const RowCall*>> calls() const;

  /// The rows of this rank's environments, of all parts. Throws what draft_statement would.
  void find(RowLetters& letters) {
    if (!find_by_code(letters)) find_by_enumeration(letters);
  }
  /// Adds where the elements of rows that were told are here; false where one is outside its buffer or has not as many
  /// elements as at the other end.
  bool locate(std::size_t part, const RowTable& table, ArrivedRows& to) {
    return locate_by_code(parts_[part], table, to) || locate_by_columns(parts_[part], table, to);
  }

  /// What rows tell as a piece of environments, and of how many elements each is: a turn of a loop is one. Throws
  /// TransportError (KP-T012) where loops have more turns than `most`.
  Piece told_environments(std::size_t part, const RowTable& table, std::int64_t most) const;

 private:
  using End = PartRows::End;
  /// The columns of one table that code writes together.
  using Columns = std::vector<Column*>;

  PartRows make_part(std::size_t k) const;
  void prepare_end(PartRows& part, End& end, bool are_runs);
  bool are_alike(const End& a, const End& b) const;
  std::size_t first_alike(std::size_t k, End PartRows::*end) const;
  std::size_t moving_dimension(const End& end) const;
  bool are_contiguous(const PartRows& part, const End& end) const;
  RowSteps steps_of(const End& end) const;
  bool may_be_apart(const PartRows& part) const;
  void make_code(jit::Wait wait);

  bool find_by_code(RowLetters& letters);
  void find_by_enumeration(RowLetters& letters);
  std::vector<Columns> columns_of(RowLetters& letters, std::size_t table) const;
  void note_columns(RowLetters& letters);

  bool locate_by_code(PartRows& part, const RowTable& table, ArrivedRows& to);
  bool locate_by_columns(PartRows& part, const RowTable& table, ArrivedRows& to);
  template <class CountOf>
  bool has_last_turns(PartRows& part, const CountOf& count_of, std::int64_t* firsts);

  const BoundPlan& bound_;
  const Statement& s_;
  std::optional<RowLoop> loop_;
  Enumeration enumeration_;
  Block block_;
  std::vector<PartRows> parts_;
  std::optional<ReadyRows> near_rows_;  ///< null where the enumeration must find them
  std::vector<std::int64_t*> columns_;  ///< that near_rows_ writes to; empty: they may lie elsewhere now
  /// Of columns that are written together, table by table: how many rows they have room for, and how many there are.
  std::vector<std::int64_t> room_, found_;
  std::vector<const std::byte*> word_columns_;  ///< of rows that have come
};

}  // namespace kplan
