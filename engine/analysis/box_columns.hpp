#pragma once
// The tracks of sources over a whole box, a block of environments at a time, where they are not affine: index lists
// between ranks that arithmetic names.

#include "engine/analysis/box_order.hpp"
#include "engine/analysis/track_columns.hpp"

namespace kplan {

class BoxColumns {
 public:
  /// For boxes of one statement. `bound` and `sources` must live as long.
  BoxColumns(const BoundPlan& bound, const Statement& s, const std::vector<TrackSource>& sources);
  BoxColumns(const BoxColumns&) = delete;
  BoxColumns& operator=(const BoxColumns&) = delete;

  /// Appends a list of all the box's environments, in order. False, and nothing is appended, where that cannot be done
  /// so, or is not worth it: slices of no plain form, few environments, several evaluating ranks, or a fault in one
  /// environment, which whoever looks at them one by one will meet.
  bool list(const Box& box, std::vector<Piece>& pieces);
  /// The same for boxes that are not in order, or not worth to be looked at each by itself.
  bool list(const std::vector<Box>& boxes, std::vector<Piece>& pieces);
  /// Whether lists on that rank have one entry for each environment.
  bool lists_environments(std::int64_t rank);

 private:
  struct Binding {
    std::size_t variable;
    ColumnProgram program;
  };

  bool serves(const Box& box) const;
  template <class F>
  bool list(std::int64_t rank, std::int64_t environments, std::vector<Piece>& pieces, const F& fill);
  void fill(const Box& box, std::int64_t first, std::size_t count);
  void fill(const Box& box, const OrderedEnvironments& environments, std::size_t first, std::size_t count);

  RankState state_;
  ColumnEvaluator columns_;
  TrackColumns tracks_;
  std::vector<std::size_t> generators_;  ///< variables, the last first
  std::vector<Binding> bindings_;        ///< that the sources need, in order
  bool wants_positions_ = false, is_served_ = true;
  Block block_;
};

}  // namespace kplan
