#pragma once
// What one rank decides, by a walk through all its environments: for where-lists that hang on the contents of buffers,
// where a symbolic solution would fall apart into single environments. Cost: see walk.hpp.

#include <functional>
#include <map>
#include <vector>

#include "engine/analysis/track_columns.hpp"
#include "engine/analysis/walk.hpp"

namespace kplan {

/// Whether environments had better be enumerated: a rank or a filter hangs on a buffer's contents by where-bound
/// variables.
bool hangs_on_contents(const Statement& s);
/// Whether a slice's bounds do, in a place or value: each environment has a slice of its own. `turns`: a variable whose
/// range is taken as a slice; -1: none.
bool do_slices_hang_on_contents(const Statement& s, int turns);
/// Whether single elements do, and nothing but what chooses them, and `turns`, makes environments: each has an element
/// of its own.
bool do_contents_choose_elements(const Statement& s, int turns = -1);

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
  ColumnEvaluator& columns() { return walk_.columns(); }

 private:
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

  void find_peers(std::size_t k, Block& block);
  static void add_block(const Block& block, const std::int64_t* peers, Growing& growing);
  void check_ranks(const ColumnProgram& ranks, const Column& values, bool are_senders, const Block& block) const;

  const BoundPlan& bound_;
  const Statement& s_;
  Walk walk_;
  std::vector<Ends> ends_;  ///< by reduction
  Block decided_;
  Column keep_, peers_;
};

}  // namespace kplan
