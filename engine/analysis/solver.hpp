#pragma once
// Which environments make this rank send, or receive: found without looking at the others'. A statement's where-list
// with its rank expressions is a system of constraints over integers; the solver narrows, and splits only variables
// that an undecided constraint depends on. What it returns are boxes: in each, every constraint holds and the peer
// is one rank, while variables that only index data keep their whole range. Cost: grows with the number of boxes
// and the logarithm of the ranks, not with the number of environments (interval branch and prune). What hangs on the
// contents of buffers, or on bits of numbers, is walked through, some nanoseconds an environment, once arithmetic has
// decided what it can.

#include <functional>
#include <optional>

#include "engine/analysis/formula.hpp"

namespace kplan {

/// The environments of one evaluating rank, or of several, that move data between two ranks.
struct Solution {
  std::int64_t peer = 0;
  Box box;
};

/// What is asked. The evaluator is the sender of a push statement and the receiver of a pull.
struct Question {
  const Reduction* reduction = nullptr;
  std::int64_t me = 0;
  bool as_sender = true;  ///< the environments in which `me` sends; else those in which it receives
};

/// A mistake found with the box of environments in which it was met.
struct SolverFault {
  EvaluationFault fault;
  Box box;
};

class Solver {
 public:
  explicit Solver(const Formula& formula) : formula_(formula) {}

  /// In ascending order of the evaluator, then of the first variables that were split. Throws SolverFault: a rank
  /// outside the group, a zero divisor, a set that is too large; KP-A010 when the where-list takes too long.
  std::vector<Solution> solve(const Question& question) const;

  /// The clauses for which a look at the ranges of what they depend on does not rule out that some environment of `me`
  /// cannot evaluate them; ascending.
  std::vector<std::size_t> doubtful_clauses(std::int64_t me) const;

  /// Some environment of `me` in which `condition` holds and all filters pass. Gives up after `budget` boxes (then
  /// `is_complete` is false).
  std::optional<Box> find(const std::function<StridedInterval(const Box&)>& condition, Formula::Mask depends,
                          std::int64_t me, std::int64_t budget, bool& is_complete) const;
  /// The same for the condition that `ranks` is no rank of the group.
  std::optional<Box> find_outside(const Expr& ranks, std::int64_t me, std::int64_t budget, bool& is_complete) const;

 private:
  struct Search;
  const Formula& formula_;
};

}  // namespace kplan
