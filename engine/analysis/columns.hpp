#pragma once
// Expressions over many environments at once: each node becomes a loop over a column of 64-bit integers. Where a column
// cannot be had that way (reals, faults, what `?:` leaves out), environments are evaluated one by one, so that values
// and faults are those of plans/evaluate.hpp.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "plans/evaluate.hpp"

namespace kplan {

/// Environments in order, as columns: the where-bound variables that are bound so far.
struct Block {
  std::size_t count = 0;
  std::vector<std::vector<std::int64_t>> words;      ///< by variable: integers, or the first word of the value
  std::vector<std::vector<std::int64_t>> second;     ///< by variable: the second word, where the type has one
  std::vector<std::vector<std::int64_t>> positions;  ///< by variable: a generator's position in its set, if wanted

  void clear(std::size_t variables);
};

/// A fault met at one environment of a block.
struct BlockFault {
  EvaluationFault fault;
  std::size_t row = 0;
};

/// The values of an expression in every environment of a block: one for all of them, or a column.
struct ColumnOperand {
  const std::int64_t* column = nullptr;
  std::int64_t value = 0;
};

class ColumnEvaluator {
 public:
  ColumnEvaluator(const Statement& s, const RankState& state);

  std::int64_t rank() const { return state_.rank; }

  /// The integer (or boolean) values of the expression in every environment. Throws BlockFault.
  void evaluate_integers(const Expr& e, const Block& block, std::vector<std::int64_t>& out);
  /// The value in one environment.
  ScalarValue evaluate_at(const Expr& e, const Block& block, std::size_t row);
  /// A context for one environment; valid until the next call.
  EvaluationContext context_at(const Block& block, std::size_t row);
  /// Offsets in elements of a reference to one element (no slice) in every environment. Throws BlockFault.
  void select_elements(const Expr& e, const Block& block, std::vector<std::int64_t>& out);
  /// The same for one that names_runs: the first element, and how many follow each other. Throws BlockFault.
  void select_runs(const Expr& e, const Block& block, std::vector<std::int64_t>& firsts,
                   std::vector<std::int64_t>& counts);

 private:
  using Column = std::vector<std::int64_t>;
  /// A column to calculate with, whose memory is used again.
  class Scratch {
   public:
    explicit Scratch(ColumnEvaluator& owner);
    ~Scratch() { --owner_.used_; }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    Column& operator*() const { return column_; }

   private:
    ColumnEvaluator& owner_;
    Column& column_;
  };
  std::optional<ColumnOperand> known(const Expr& e, const Block& block) const;
  template <class F>
  bool with_operand(const Expr& e, const Block& block, const F& f);
  bool fast(const Expr& e, const Block& block, Column& out);
  bool fast_pair(Operation operation, const Expr& e, const Block& block, Column& out);
  bool fast_operation(const Expr& e, const Block& block, Column& out);
  bool fast_offsets(const Expr& e, const Block& block, Column& out);
  bool fast_runs(const Expr& e, const Block& block, Column& firsts, Column& counts);

  const Statement& s_;
  const RankState& state_;
  std::vector<ScalarValue> variables_;
  std::deque<Column> scratch_;
  std::size_t used_ = 0;
};

/// Whether all elements that the reference names follow each other, in every environment and on every rank, as its form
/// shows: one element, a slice by ones of the last dimension, or a whole buffer.
bool names_runs(const PlanModel& plan, const Expr& e);

}  // namespace kplan
