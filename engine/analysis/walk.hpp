#pragma once
// The environments of a where-list on one rank, all of them or those of a box, in blocks of columns. Cost: some
// nanoseconds for each node of an expression in each environment.

#include <functional>
#include <vector>

#include "engine/analysis/columns.hpp"
#include "engine/analysis/formula.hpp"

namespace kplan {

/// A fault met in a walk, with what is bound by then: so many variables, and the positions of generators if wanted.
struct WalkFault {
  EvaluationFault fault;
  int bound_count = 0;
  std::vector<ScalarValue> variables;
  std::vector<std::int64_t> positions;  ///< by variable
};

class Walk {
 public:
  /// Both must live as long; `state` may have got other values at each walk.
  Walk(const Statement& s, const RankState& state);

  /// Calls f(block) for blocks of environments that pass the filters, in order; f may change the block. Throws
  /// WalkFault, also for BlockFaults that f throws.
  void each(const std::function<void(Block&)>& f) { run(f, nullptr, largest_step_count); }
  /// The same for the environments of a box, whose evaluators are not looked at. Of generators whose sets it does not
  /// know all values are met; they are positions, too. False where that would take more than so many steps: values
  /// taken, filters tried, environments passed to f.
  bool each(const Box& box, std::int64_t most_steps, const std::function<void(Block&)>& f);
  /// What the last walk took, in values that columns take; one that is evaluated by itself takes as long as 64.
  std::int64_t steps() const { return steps_ + 63 * (columns_.count_one_by_one() - one_by_one_before_); }

  /// Blocks have positions of generators from now on.
  void want_positions() { wants_positions_ = true; }
  /// Keeps the environments whose entry is not 0.
  void keep(const Column& entries, Block& block) const { keep_rows(all_, entries, block); }
  /// Of all that has a meaning in blocks that f is called for.
  void copy(const Block& from, Block& to) const;
  /// Throws the WalkFault for a fault met in a block in which all is bound.
  [[noreturn]] void fail(const BlockFault& fault, const Block& block) { fail(fault, stages_.size(), block); }
  ColumnEvaluator& columns() { return columns_; }

 private:
  /// A column of blocks that has a meaning.
  struct Bound {
    std::vector<Column> Block::*columns;
    std::size_t variable;
  };
  /// What one clause needs.
  struct Stage {
    const Clause& clause;
    int bound_count;                      ///< variables before it
    std::vector<Bound> bound;             ///< before it
    std::vector<ColumnProgram> programs;  ///< its expression; of a range: its first, last and perhaps step
    std::vector<Column> limits = {};      ///< of a range, by program
    Block made;                           ///< by a generator
  };

  struct TooLong {};

  void run(const std::function<void(Block&)>& f, const Box* box, std::int64_t most_steps);
  void spend(const Clause& clause, std::size_t steps);
  void expand(std::size_t clause, Block& block);
  void bind(Stage& stage, Block& block);
  void generate(std::size_t clause, const Block& block);
  SetValues set_at(Stage& stage, const Block& block, std::size_t row);
  void repeat(const Stage& stage, const Block& block, std::size_t row, std::size_t count, Block& next) const;
  static void keep_rows(const std::vector<Bound>& bound, const Column& entries, Block& block);
  [[noreturn]] void fail(const BlockFault& fault, std::size_t clause, const Block& block);

  const Statement& s_;
  ColumnEvaluator columns_;
  std::vector<Stage> stages_;  ///< by clause
  std::vector<Bound> all_;     ///< columns that have a meaning after the last clause
  bool wants_positions_ = false;
  Block start_;
  Column keep_;
  std::int64_t steps_ = 0, most_steps_ = 0, one_by_one_before_ = 0;
  const std::function<void(Block&)>* f_ = nullptr;  ///< of this walk
  const Box* box_ = nullptr;
};

}  // namespace kplan
