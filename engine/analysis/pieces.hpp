#pragma once
// Boxes of environments as pieces: what several tracks meet, environment by environment in where-list order. Tracks
// that are affine over a box become strides, slices add dimensions, everything else is listed and compressed again.

#include <vector>

#include "engine/analysis/access_pattern.hpp"
#include "engine/analysis/affine_reference.hpp"
#include "engine/analysis/bound_plan.hpp"
#include "engine/analysis/solver.hpp"

namespace kplan {

inline constexpr std::int64_t most_message_elements = std::int64_t{1} << 40, most_message_bytes = std::int64_t{1} << 36;
/// Where no closed form is found: environments and elements that are looked at one by one, those that are brought into
/// order as numbers, and those that are kept in a map.
inline constexpr std::int64_t most_listed = std::int64_t{1} << 28, most_merged = std::int64_t{1} << 26,
                              most_sorted = std::int64_t{1} << 22;

/// What one track follows.
struct TrackSource {
  enum class Kind : std::uint8_t {
    element,   ///< bytes from a buffer's start, of every element that the reference names
    number,    ///< the evaluating rank (0), or where-bound variable number - 1
    word,      ///< one word of a where-bound variable's value, see word_of
    position,  ///< where a generator's value stands in its set, see BoxSet
    count,     ///< how many elements an environment has
  };
  Kind kind = Kind::element;
  const Expr* element = nullptr;
  int number = 0;  ///< number, position: by number; word: the variable
  int word = 0;
  std::vector<const Expr*> counted;  ///< count: references whose elements are counted
};

/// Makes pieces for one statement on the rank of `bound.state`.
class PieceMaker {
 public:
  PieceMaker(const BoundPlan& bound, const Statement& s, const Formula& formula)
      : bound_(bound), s_(s), formula_(formula) {}

  /// The environments of the boxes in order. Throws SolverFault: subscripts out of bounds, slices that do not conform,
  /// KP-A011 where too much would have to be listed.
  std::vector<Piece> pieces_of(std::vector<Box> boxes, const std::vector<TrackSource>& sources);

  /// Counts what is done one by one, so that it ends.
  void spend(Wide count, std::int64_t most, const Box& box);
  void spend(const Box& box, std::int64_t most);

  /// The rank's state and the variables in one environment of a box. Valid until the next call.
  EvaluationContext context_at(const Box& box, const std::vector<std::int64_t>& indices);

 private:
  using Bases = std::vector<std::vector<std::int64_t>>;  ///< by track, of the elements of one environment

  std::optional<Piece> affine_piece(const Box& box, const std::vector<TrackSource>& sources);
  std::optional<AffineReference> affine_track(const TrackSource& source, const Box& box) const;
  Bases bases_at(const Box& box, const std::vector<std::int64_t>& indices, const std::vector<TrackSource>& sources);
  std::vector<std::int64_t> track_at(const TrackSource& source, const Box& box,
                                     const std::vector<std::int64_t>& indices, const EvaluationContext& context) const;
  void listed_in_turn(const std::vector<Box>& boxes, const std::vector<TrackSource>& sources, std::vector<Piece>& out);
  bool listed_together(const std::vector<Box>& boxes, bool are_ordered, const std::vector<TrackSource>& sources,
                       std::vector<Piece>& out);
  void listed_in_order(const std::vector<Box>& boxes, const std::vector<TrackSource>& sources, std::vector<Piece>& out);

  const BoundPlan& bound_;
  const Statement& s_;
  const Formula& formula_;
  RankState state_;
  std::vector<ScalarValue> variables_;
  std::int64_t listed_ = 0;
};

/// The one environment of a box that the indices name.
Box single(const Box& box, const std::vector<std::int64_t>& indices);

/// Appends a list of `bases`, one list for each track, to the pieces. With no tracks, `count` environments.
void append_listed(std::vector<Piece>& pieces, const std::vector<std::vector<std::int64_t>>& bases, std::size_t count);

/// Slices in one value have one length, or one element: the length. Throws EvaluationFault KP-P058.
std::size_t common_count(std::size_t count, std::size_t other, Span span);

}  // namespace kplan
