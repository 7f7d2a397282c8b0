#pragma once
// What one rank sends and receives in one statement: for each peer, in the order that both ends agree on
// (environment order, then position), where the elements lie on this rank. Ranks are numbers in the statement's group.

#include <vector>

#include "engine/analysis/access_pattern.hpp"
#include "engine/analysis/bound_plan.hpp"
#include "engine/analysis/knowledge.hpp"

namespace kplan {

/// A where-bound number that stands in a value: its track gives one word of it.
struct NumberUse {
  int number = 0;  ///< 0: the evaluating rank; v + 1: where-bound variable v
  int word = 0;
  bool operator==(const NumberUse&) const = default;
};

/// The value of a reduction as this rank evaluates it: `rank` a number where it is this rank's, and bindings replaced
/// where this rank evaluates the where-list. Tracks of a value's pieces: one for each of `elements`, then one for each
/// of `numbers`.
struct ValueForm {
  ExprPtr value;
  std::vector<const Expr*> elements;  ///< nodes of `value` that read buffers
  std::vector<NumberUse> numbers;
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

/// What the end of a message that evaluates the where-list tells the other, where that cannot replay it: the
/// environments of each reduction between them, in order, as pieces. Their tracks: the words of the where-bound
/// variables that the other end uses, ascending; the number of elements in each environment; and, where reductions can
/// meet in one place, the position of every generator's value in its set.
struct Notice {
  struct Part {
    int reduction = 0;
    std::vector<Piece> environments;
  };
  std::int64_t peer = 0;  ///< the rank that is told, or that has told
  std::vector<Part> parts;
};

/// Works out both halves of the pattern of a global or corresponding statement for the rank of `bound.state`. Throws
/// PlanError that names the environment. Cost: grows with what this rank moves; see solver.hpp.
StatementPattern find_pattern(const BoundPlan& bound, const Statement& s, const Knowledge& knowledge);

/// Works out the half that the rank knows as the one that evaluates the where-list (push: what it sends; pull: what it
/// receives), and what it has to tell its peers, itself among them, ascending.
struct OwnHalf {
  StatementPattern pattern;
  std::vector<Notice> notices;
};
OwnHalf find_own_half(const BoundPlan& bound, const Statement& s, const Knowledge& knowledge);

/// Adds the other half, from what ranks have told this one (ascending). Throws PlanError.
void add_told_half(const BoundPlan& bound, const Statement& s, const std::vector<Notice>& told,
                   StatementPattern& pattern);

/// Whether what one end of a message expects may hang on data that the other end does not know: a claim, or slices by
/// private names. Then segments have digests, and the ends compare them.
bool may_ends_differ(const PlanModel& plan, const Statement& s, const Knowledge& knowledge);

/// One step of a digest.
std::uint64_t mixed(std::uint64_t h, std::uint64_t v);

/// One environment of a message: its positions in the where-list's sets, and how many elements travel in it.
struct EnvironmentKey {
  std::vector<std::int64_t> positions;
  std::int64_t element_count = 0;
};

/// Single environments of what a rank receives, looked up afterwards: slow, for what closed forms do not say.
class ReceivedEnvironments {
 public:
  /// `told`: what senders have told of a push statement that only they know; null for others.
  ReceivedEnvironments(const BoundPlan& bound, const Statement& s, const std::vector<Notice>* told)
      : bound_(bound), s_(s), told_(told) {}

  /// The environments of one reduction from `sender` to this rank, in order.
  std::vector<EnvironmentKey> keys(std::int64_t sender, int reduction) const;

  /// The environment, as text, that is the first (number `occurrence` from 0) of those from `sender` to this rank in
  /// which byte `offset_bytes` of the place's buffer is met by a reduction. For error messages.
  std::string text_at(std::int64_t sender, int reduction, std::int64_t offset_bytes, int occurrence) const;

 private:
  const BoundPlan& bound_;
  const Statement& s_;
  const std::vector<Notice>* told_;
};

}  // namespace kplan
