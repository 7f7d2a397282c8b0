#pragma once
// The environments of one rank, all of them, in blocks of columns: for where-lists that hang on the contents of
// buffers, where a symbolic solution would fall apart into single environments. Cost: some nanoseconds for each node of
// an expression in each environment.

#include <functional>
#include <map>
#include <vector>

#include "engine/analysis/columns.hpp"
#include "engine/analysis/track_columns.hpp"

namespace kplan {

/// Whether environments had better be enumerated: a rank or a filter hangs on a buffer's contents by where-bound
/// variables.
bool hangs_on_contents(const Statement& s);

class Enumeration {
 public:
  /// May be used again after `bound` has got other values.
  Enumeration(const BoundPlan& bound, const Statement& s)
      : bound_(bound), s_(s), columns_(s, bound.state), blocks_(s.clauses.size() + 1) {}

  /// The environments in which this rank decides (as sender of a push, or receiver of a pull), by peer.
  struct Lists {
    std::vector<GrowingTrack> own;     ///< by source, element by element
    std::vector<GrowingTrack> notice;  ///< by source, environment by environment
    std::int64_t element_count = 0, environment_count = 0;
  };
  using ByPeer = std::map<std::int64_t, Lists>;

  /// By reduction, as `own` and `notice` are: the tracks of sources. Throws PlanError and RunError that name the
  /// environment: ranks outside the group among them.
  std::vector<ByPeer> lists(const std::vector<std::vector<TrackSource>>& own,
                            const std::vector<std::vector<TrackSource>>& notice);

  /// Calls f(reduction, block, peers) for blocks of environments in which this rank decides, in order, with the rank at
  /// the other end of each. BlockFaults that f throws become errors, and all errors are as those of lists().
  void each_decided(const std::function<void(std::size_t, const Block&, const std::vector<std::int64_t>&)>& f);
  ColumnEvaluator& columns() { return columns_; }

 private:
  void expand(std::size_t clause, Block& block, const std::function<void(Block&)>& f);
  void generate(std::size_t clause, const Block& block, const std::function<void(Block&)>& f);
  void bind(const Clause& c, Block& block);
  void find_peers(const Reduction& r, Block& block, std::vector<std::int64_t>& peers);
  void add_block(const Block& block, const std::vector<std::int64_t>& peers, const std::vector<TrackSource>& own,
                 const std::vector<TrackSource>& notice, ByPeer& out);
  void check_ranks(const Expr& e, const std::vector<std::int64_t>& ranks, const char* what, const Block& block);
  /// Calls f() and turns its faults into errors; variables of the clauses before `clause` are known.
  template <class F>
  void guarded(std::size_t clause, const Block& block, const F& f);

  const BoundPlan& bound_;
  const Statement& s_;
  ColumnEvaluator columns_;
  std::vector<Block> blocks_;  ///< that each clause makes; of the last: the one they begin with
  Block decided_;
  std::vector<std::int64_t> keep_, peers_;
  std::int64_t steps_ = 0;
};

}  // namespace kplan
