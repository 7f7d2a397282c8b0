#pragma once
// Whether the two ends of a message mean the same: as many elements in every environment, and for claims the same
// where-bound values.

#include <map>
#include <vector>

#include "engine/analysis/pattern.hpp"
#include "engine/analysis/pieces.hpp"

namespace kplan {

class Conformity {
 public:
  Conformity(const BoundPlan& bound, const Statement& s, const Formula& formula, PieceMaker& pieces)
      : bound_(bound), s_(s), formula_(formula), pieces_(pieces) {}

  /// Language.md section 2: both sides of a reduction have the same number of elements. Looked at on the receiver,
  /// which replays the sender; where that takes the sender's private data, the ends compare digests. Throws SolverFault
  /// KP-P058, KP-P059, and that of a slice's bound which has no value. `place` is the reduction's, as this rank
  /// evaluates it.
  void check(const Reduction& r, const Expr& place, const Box& box, std::int64_t sender);

  /// What both ends of a message must agree on: the elements of each environment, in order, and the where-bound values
  /// that the end which does not evaluate the where-list uses. `told`: their tracks on this end. Cost: some nanoseconds
  /// an environment.
  std::uint64_t digest(const std::vector<Box>& boxes, const std::vector<TrackSource>& told);

 private:
  const std::vector<Layout>& layouts_at(std::int64_t rank);
  bool conform_in_columns(const Expr& place, const std::vector<const Expr*>& values,
                          const std::vector<Layout>& value_layouts, const Box& box) const;

  const BoundPlan& bound_;
  const Statement& s_;
  const Formula& formula_;
  PieceMaker& pieces_;
  std::vector<ExprPtr> kept_;  ///< the formula remembers expressions by address
  std::map<std::int64_t, std::vector<Layout>> layouts_;
};

/// Throws EvaluationFault KP-P059 unless a value of so many elements fits a place of so many.
void conform(std::int64_t value, std::int64_t place, Span span);

}  // namespace kplan
