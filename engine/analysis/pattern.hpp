#pragma once
// What one rank sends and receives in one statement: for each peer, in the order that both ends agree on
// (environment order, then position), where the elements lie on this rank.

#include <vector>

#include "engine/analysis/access_pattern.hpp"
#include "engine/analysis/knowledge.hpp"
#include "plans/evaluate.hpp"

namespace kplan {

/// A plan with this rank's values: what analysis starts from. Contents are known of fixed buffers only.
struct BoundPlan {
  std::shared_ptr<const PlanModel> model;
  RankState state;
};

/// The value of a reduction as this rank evaluates it: bindings replaced, `rank` a number where it is this rank's.
/// Tracks of a value's pieces: one for each of `elements`, then one for each of `numbers`.
struct ValueForm {
  ExprPtr value;
  std::vector<const Expr*> elements;  ///< nodes of `value` that read buffers
  std::vector<int> numbers;           ///< 0: the evaluating rank; v + 1: where-bound variable v
};

/// One reduction's share of a message.
struct Segment {
  int reduction = 0;
  std::int64_t element_count = 0;
  std::vector<Piece> pieces;  ///< value tracks on the sender, the place's one track on the receiver
  std::uint64_t digest =
      0;  ///< of the number of elements of each environment, in order, and of where-bound values that the place needs
};

struct Flow {
  std::int64_t peer = 0;
  std::vector<Segment> segments;  ///< in the order of the reductions; those without elements left out
};

struct StatementPattern {
  std::vector<ValueForm> values;  ///< by reduction
  std::vector<Flow> sends;        ///< ascending peer, this rank's own among them
  std::vector<Flow> receives;
};

/// Whether what one end of a message expects may hang on data that the other end does not know: a claim, or slices by
/// private names. Then segments have digests, and the ends compare them.
bool may_ends_differ(const PlanModel& plan, const Statement& s);

/// One step of a digest.
std::uint64_t mixed(std::uint64_t h, std::uint64_t v);

/// Works out the pattern of a global or corresponding statement for the rank of `bound.state`. Throws PlanError that
/// names the environment. Cost: grows with what this rank moves; see solver.hpp.
StatementPattern find_pattern(const BoundPlan& bound, const Statement& s);

/// One environment of a message: its positions in the where-list's sets, and how many elements travel in it.
struct EnvironmentKey {
  std::vector<std::int64_t> positions;
  std::int64_t element_count = 0;
};
/// The environments of one reduction from `sender` to this rank, in order. Slow: one by one.
std::vector<EnvironmentKey> environment_keys(const BoundPlan& bound, const Statement& s, std::int64_t sender,
                                             int reduction);

/// The environment, as text, that is the first (number `occurrence` from 0) of those from `sender` to this rank in
/// which byte `offset_bytes` of the place's buffer is met by a reduction. For error messages; slow.
std::string environment_at(const BoundPlan& bound, const Statement& s, std::int64_t sender, int reduction,
                           std::int64_t offset_bytes, int occurrence);

}  // namespace kplan
