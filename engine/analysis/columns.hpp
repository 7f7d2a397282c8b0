#pragma once
// Expressions over blocks of environments. Where a column cannot be had by loops, environments are evaluated one by
// one, so that values and faults are those of plans/evaluate.hpp.

#include "engine/analysis/column_program.hpp"

namespace kplan {

/// A where-bound value on its way in 64-bit words: integers as they are, others as their object representation.
std::int64_t word_of(const ScalarValue& v, int word);
ScalarValue value_of_words(Scalar type, std::int64_t first, std::int64_t second);
/// One, or two for c128.
int word_count(Scalar type);

/// A fault met at one environment of a block.
struct BlockFault {
  EvaluationFault fault;
  std::size_t row = 0;
};

class ColumnEvaluator {
 public:
  ColumnEvaluator(const Statement& s, const RankState& state);

  std::int64_t rank() const { return state_.rank; }
  ColumnProgram program(const Expr& e, ColumnProgram::Form form) const { return {e, form, state_}; }

  /// What the program says, for every environment; see ColumnProgram::run. Throws BlockFault.
  void run(ColumnProgram& program, const Block& block, std::int64_t* values, std::int64_t* counts = nullptr) {
    if (!program.run(state_, block, values, counts)) run_one_by_one(program, block, values, counts);
  }
  /// How many values have been evaluated one by one.
  std::int64_t count_one_by_one() const { return one_by_one_; }
  /// The value in one environment. Throws BlockFault.
  ScalarValue evaluate_at(const Expr& e, const Block& block, std::size_t row);
  /// A context for one environment; valid until the next call.
  EvaluationContext context_at(const Block& block, std::size_t row);
  /// A context without where-bound variables.
  EvaluationContext context() const { return {.state = &state_}; }

 private:
  void run_one_by_one(const ColumnProgram& program, const Block& block, std::int64_t* values, std::int64_t* counts);

  const Statement& s_;
  const RankState& state_;
  std::vector<ScalarValue> variables_;
  std::int64_t one_by_one_ = 0;
};

/// Whether the step of a slice or range is 1, or left out.
bool is_by_ones(const ExprPtr& step);
/// Whether all elements that the reference names follow each other, in every environment and on every rank, as its form
/// shows: one element, a slice by ones of the last dimension, or a whole buffer.
bool names_runs(const PlanModel& plan, const Expr& e);
/// The same of elements one stride apart: a slice by ones of any one dimension, too.
bool names_strided_runs(const PlanModel& plan, const Expr& e);

}  // namespace kplan
