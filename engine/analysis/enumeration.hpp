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
  Enumeration(const BoundPlan& bound, const Statement& s);

  /// The environments in which this rank decides (as sender of a push, or receiver of a pull), by peer.
  struct Pieces {
    std::optional<Piece> own;  ///< of elements; none where there are none
    Piece notice;              ///< of environments
  };
  using ByPeer = std::map<std::int64_t, Pieces>;

  /// By reduction, as `own` and `notice` are: the tracks of sources. Throws PlanError and RunError that name the
  /// environment: ranks outside the group among them.
  std::vector<ByPeer> pieces(const std::vector<std::vector<TrackSource>>& own,
                             const std::vector<std::vector<TrackSource>>& notice);

  /// Calls f(reduction, block, peers) for blocks of environments in which this rank decides, in order, with the rank at
  /// the other end of each. BlockFaults that f throws become errors, and all errors are as those of pieces().
  void each_decided(const std::function<void(std::size_t, const Block&, const std::int64_t*)>& f);
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
    std::vector<Bound> bound;             ///< before it
    std::vector<ColumnProgram> programs;  ///< its expression; of a range: its first, last and perhaps step
    std::vector<Column> limits = {};      ///< of a range, by program
    Block made;                           ///< by a generator
  };
  /// The pieces of one reduction.
  struct Growing {
    struct OfPeer {
      GrowingPiece own, notice;
    };
    TrackColumns own, notice;
    std::map<std::int64_t, OfPeer> by_peer = {};
  };
  /// The ranks of one reduction.
  struct Ends {
    ColumnProgram decider, other;
  };

  void expand(std::size_t clause, Block& block, const std::function<void(Block&)>& f);
  void bind(Stage& stage, Block& block);
  void generate(std::size_t clause, const Block& block, const std::function<void(Block&)>& f);
  SetValues set_at(Stage& stage, const Block& block, std::size_t row);
  void repeat(const Stage& stage, const Block& block, std::size_t row, std::size_t count, Block& next) const;
  void find_peers(std::size_t k, Block& block);
  static void keep_rows(const std::vector<Bound>& bound, const Column& keep, Block& block);
  static void add_block(const Block& block, const std::int64_t* peers, Growing& growing);
  void check_ranks(const ColumnProgram& ranks, const Column& values, bool are_senders, const Block& block) const;
  /// Calls f() and turns its faults into errors; variables of the clauses before `clause`, which f may move, are known.
  template <class F>
  void guarded(const std::size_t& clause, const Block& block, const F& f);

  const BoundPlan& bound_;
  const Statement& s_;
  ColumnEvaluator columns_;
  std::vector<Stage> stages_;  ///< by clause
  std::vector<Bound> all_;     ///< columns that have a meaning after the last clause
  std::vector<Ends> ends_;     ///< by reduction
  bool wants_positions_ = false;
  Block start_, decided_;
  Column keep_, peers_;
  std::int64_t steps_ = 0;
};

}  // namespace kplan
