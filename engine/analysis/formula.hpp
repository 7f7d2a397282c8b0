#pragma once
// A statement prepared for evaluation over sets of environments: which where-bound variables each expression depends
// on, and strided-interval evaluation and narrowing over boxes.

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/analysis/strided_interval.hpp"
#include "plans/evaluate.hpp"

namespace kplan {

/// The positions first, first + step, ... (`count` of them) of one variable in its set.
struct Progression {
  std::int64_t first = 0, step = 1, count = 1;
  std::int64_t operator[](std::int64_t k) const { return first + k * step; }
  std::int64_t last() const { return first + (count - 1) * step; }
  bool operator==(const Progression&) const = default;
};

/// The set of one generator within a box: an arithmetic progression of values, or a list.
struct BoxSet {
  bool is_known = false;             ///< its bounds are single values in this box
  std::int64_t first = 0, step = 1;  ///< value at position t: first + step * t, unless there is a list
  std::int64_t count = 0;
  std::shared_ptr<const std::vector<std::int64_t>> list;
  StridedInterval hull;  ///< of the values, also when the set is not known
};

/// Of generators whose sets differ from environment to environment: the position is the value.
inline const BoxSet every_value{true, 0, 1, INT64_MAX, nullptr, StridedInterval::unknown()};

/// A set of environments of one evaluating rank or of several: for the evaluator (number 0) and each where-bound
/// variable (number v + 1) its positions. Bindings have no positions; they follow.
struct Box {
  std::vector<Progression> positions;
  std::vector<BoxSet> sets;
  /// If there is one: only these environments are in the set, ascending. Each is a number whose digits, the evaluator's
  /// first, are indices into the positions.
  std::shared_ptr<const std::vector<std::uint64_t>> only = nullptr;
};

/// What a rank knows when it works out a statement's pattern, its own or another's: everything but who evaluates.
struct Knowing {
  const PlanModel* plan = nullptr;
  const Statement* statement = nullptr;
  std::int64_t size = 1;
  const RankState* state = nullptr;  ///< parameters, fixed contents; the rank in it is not used
};

/// Whether ranges of integers say something about it.
inline bool is_integral(const Expr& e) { return !e.record && (e.type == Scalar::boolean || is_integer(e.type)); }

class Formula {
 public:
  explicit Formula(const Knowing& knowing);

  using Mask = std::uint64_t;
  /// Bit 0: the evaluator; bit v + 1: variable v, or for bindings what they depend on.
  Mask mask_of(const Expr& e) const;
  Mask mask_of_set(const Set& s) const;

  /// The values the expression can take in the box; throws EvaluationFault only where all it depends on is single.
  StridedInterval range_of(const Expr& e, const Box& box) const;
  /// Whether the expression depends on single values only.
  bool is_single(const Expr& e, const Box& box) const { return (mask_of(e) & open_mask(box)) == 0; }
  /// Whether the expression can surely be evaluated in every environment of the box in which the clauses before it can:
  /// no zero divisor, overflow or element outside a buffer. False where that does not show.
  bool is_safe(const Expr& e, const Box& box) const;
  bool is_safe(const Set& s, const Box& box) const;
  /// Whether it is a range by ones whose bounds hang on where-bound variables.
  bool is_ragged(const Set& s) const;
  /// The variables with more than one position.
  static Mask open_mask(const Box& box);

  /// Shrinks the box to where e can be in `wanted`; false when that is empty.
  bool narrow(const Expr& e, const StridedInterval& wanted, Box& box) const;
  /// Shrinks the box to where the boolean e can be true; false when that is empty.
  bool narrow_true(const Expr& e, Box& box) const;

  /// Both sides equal.
  bool narrow_equal(const Expr& a, const Expr& b, Box& box) const;

  /// e as constant + sum of coefficients * (index into the variable's positions), one per number; nothing where it is
  /// not affine.
  struct Affine {
    std::int64_t constant = 0;
    std::vector<std::int64_t> coefficients;
  };
  std::optional<Affine> affine(const Expr& e, const Box& box) const;

  /// The variables' values where all positions are single (or at the given index of each).
  void values_at(const Box& box, const std::vector<std::int64_t>& indices, RankState& state,
                 std::vector<ScalarValue>& variables) const;
  const Expr* binding_of(int variable) const { return bindings_[static_cast<std::size_t>(variable)]; }
  static std::int64_t value_at(const Box& box, std::size_t number, std::int64_t position);
  /// The values a variable or the evaluator can take in the box.
  StridedInterval range_of_number(std::size_t number, const Box& box) const;

  const Knowing& knowing() const { return knowing_; }

 private:
  StridedInterval element_range(const Expr& e, const Box& box) const;
  StridedInterval hull_of(const Expr& e) const;
  bool is_surely_inside(const Expr& e, const Box& box) const;
  bool is_safe_where(const Expr& condition, const Expr& e, const Box& box) const;
  bool is_safe_operation(const Expr& e, const Box& box) const;
  StridedInterval operation_range(const Expr& e, const Box& box) const;
  /// The same, unknown where evaluation would fail: for what may not be evaluated at all.
  StridedInterval guarded_range(const Expr& e, const Box& box) const;
  ScalarValue exact(const Expr& e, const Box& box) const;

  Knowing knowing_;
  std::vector<const Expr*> bindings_;  ///< by variable; null for generators
  mutable std::unordered_map<const Expr*, Mask> masks_;
  mutable std::unordered_map<int, StridedInterval> hulls_;
  mutable std::optional<RankState> scratch_state_;  ///< made when it is first needed
  mutable std::vector<ScalarValue> scratch_variables_;
};

}  // namespace kplan
