#pragma once
// What expressions mean on one rank: shapes, subscripts, values, where-lists. This is language.md sections 2, 3 and 5
// in code, the only place where they are evaluated one environment at a time; the reference interpreter is built on
// it, and the engine falls back to it where no closed form is found.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plans/model.hpp"

namespace kplan {

/// The most elements of one slice that are listed one by one.
inline constexpr std::int64_t largest_selection = std::int64_t{1} << 30;

/// The extents of a buffer on one rank, in elements.
struct Layout {
  std::vector<std::int64_t> shape, strides;
  std::int64_t element_count = 0;  ///< product of the shape
  std::int64_t extent = 0;         ///< elements from the first to the last in memory, inclusive; 0 when empty
};

/// Calls f(first, count) for runs of elements that follow each other in memory; what lies between is the program's.
template <class F>
void each_run(const Layout& layout, const F& f, std::size_t dimension = 0, std::int64_t first = 0) {
  if (layout.extent == layout.element_count) return f(0, layout.extent);
  if (dimension == layout.shape.size()) return f(first, 1);
  const std::int64_t length = layout.shape[dimension], stride = layout.strides[dimension];
  if (dimension + 1 == layout.shape.size() && stride == 1) return f(first, length);
  for (std::int64_t k = 0; k < length; ++k) each_run(layout, f, dimension + 1, first + k * stride);
}

/// One rank as expressions see it. `rank` and `size` are those of the statement's group.
struct RankState {
  std::int64_t rank = 0, size = 1;
  std::vector<ScalarValue> parameters;
  std::vector<Layout> layouts;
  std::vector<const std::byte*> contents;  ///< one per buffer; null where it is not known
};

/// A mistake met while evaluating; the caller knows the text and adds the environment.
struct EvaluationFault {
  std::string code;
  std::string message;
  Span span;
  std::string advice = {};  ///< what to do about it; stands behind the environment
};

/// A rank expression gave a number that is no rank of the group; `what` is sender or receiver.
EvaluationFault rank_outside_group(const char* what, std::int64_t rank, std::int64_t size, Span span);

/// The most elements a buffer may have: far above any memory, far below overflow in 64 bits.
inline constexpr std::int64_t largest_element_count = std::int64_t{1} << 46;

/// The layouts of all buffers, from parameters, rank and size. Throws PlanError KP-B0xx.
std::vector<Layout> layouts_of(const PlanModel& plan, std::int64_t rank, std::int64_t size,
                               const std::vector<ScalarValue>& parameters);

/// Where an expression is evaluated: a rank's state, the where-bound variables, and for operators the operands.
struct EvaluationContext {
  const RankState* state = nullptr;
  const ScalarValue* variables = nullptr;
  const std::byte* left = nullptr;   ///< the place's element, in an update
  const std::byte* right = nullptr;  ///< the value, in the place's type
  const ElementType* operand_type = nullptr;
  /// Offsets of the element expressions of a value, filled by `select_all`; `position` picks one.
  const std::map<const Expr*, std::vector<std::int64_t>>* selections = nullptr;
  std::size_t position = 0;
};

/// The scalar value. Throws EvaluationFault: zero divisors, overflow of index arithmetic, subscripts out of bounds.
ScalarValue evaluate(const Expr& e, const EvaluationContext& context);
std::int64_t evaluate_index(const Expr& e, const EvaluationContext& context);

/// The checked result of one operation of index arithmetic. Throws EvaluationFault (with `span`).
std::int64_t apply_index(Operation op, std::int64_t a, std::int64_t b, Span span);

/// The elements that an element or slice expression names, as offsets in elements from the buffer's start, in
/// row-major order. Throws EvaluationFault when one is outside the buffer.
std::vector<std::int64_t> select(const Expr& element, const EvaluationContext& context);

/// One dimension of a selection: `count` elements from `first` on, `step` apart.
struct SubscriptRange {
  std::int64_t first = 0, count = 1, step = 1;
};
/// The selection of each dimension, checked against the layout; see `select`.
std::vector<SubscriptRange> subscript_ranges(const Expr& element, const EvaluationContext& context);
/// Normalises lo:hi:step (any may be absent: pass the defaults) of a dimension with `extent` elements.
SubscriptRange slice_range(std::int64_t lo, std::int64_t hi, std::int64_t step);
/// Throws EvaluationFault when the range leaves the dimension.
void check_bounds(const Expr& element, std::size_t dimension, const SubscriptRange& range, std::int64_t extent);

/// The elements that a value reads: every one that stands in it, chosen by `?:` or not, subscripts aside.
std::vector<const Expr*> elements_read(const Expr& value);

/// The values of a generator's set, in order. Throws EvaluationFault; for ranges of more values, or that reach further,
/// too.
inline constexpr std::int64_t largest_set = std::int64_t{1} << 40, largest_reach = std::int64_t{1} << 62;
class SetValues {
 public:
  SetValues(const Set& set, const EvaluationContext& context, Span span);
  /// A range, from what its expressions are.
  SetValues(const Set& range, std::int64_t first, std::int64_t last, std::int64_t step, Span span);
  std::int64_t count() const { return count_; }
  std::int64_t operator[](std::int64_t k) const;
  /// The values [first, first + count) of the set.
  void write(std::int64_t first, std::int64_t count, std::int64_t* to) const;
  bool is_arithmetic() const { return values_.empty(); }
  std::int64_t first() const { return first_; }
  std::int64_t step() const { return step_; }

 private:
  std::int64_t first_ = 0, step_ = 1, count_ = 0;
  std::vector<std::int64_t> values_;  ///< when not an arithmetic progression
};

/// The most steps of one walk through a where-list: values taken by generators and bindings, and filters tried.
inline constexpr std::int64_t largest_step_count = std::int64_t{1} << 32;

/// Calls f(variables) for every environment that passes the filters, in order; stops when f returns false. Throws
/// EvaluationFault with the environment so far in `faulty` when that is not null; KP-P051 after `most_steps`.
void for_each_environment(const Statement& s, const RankState& state,
                          const std::function<bool(const std::vector<ScalarValue>&)>& f,
                          std::vector<ScalarValue>* faulty = nullptr, int* bound_count = nullptr,
                          std::int64_t most_steps = largest_step_count);

/// `i = 3, k = 10` for the variables bound so far.
std::string environment_text(const Statement& s, const std::vector<ScalarValue>& variables, int bound_count);

}  // namespace kplan
