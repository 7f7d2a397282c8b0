// How it works: for each clause that might fault, the statement is cut off before it, and the solver looks for an
// environment of what is left in which it does.
#include "engine/analysis/clause_faults.hpp"

#include <algorithm>

#include "engine/analysis/expressions.hpp"

namespace kplan {
namespace {

constexpr std::int64_t most_boxes = std::int64_t{1} << 20;
constexpr std::int64_t large = std::int64_t{1} << 31;

std::vector<ExprPtr> expressions_of(const Clause& c) {
  std::vector<ExprPtr> out;
  for (const auto* e : {&c.expression, &c.set.first, &c.set.last, &c.set.step, &c.set.buffer})
    if (*e) out.push_back(*e);
  out.insert(out.end(), c.set.elements.begin(), c.set.elements.end());
  return out;
}

/// The value where it is the same in all environments, by the look of it.
std::optional<std::int64_t> plain_value(const Expr& e, const Knowing& knowing) {
  switch (e.kind) {
    case ExprKind::constant: return e.value.as_integer();
    case ExprKind::size: return knowing.size;
    case ExprKind::parameter: return knowing.state->parameters[static_cast<std::size_t>(e.id)].as_integer();
    case ExprKind::operation: break;
    default: return std::nullopt;
  }
  if (e.operands.empty() || e.type != Scalar::i64) return std::nullopt;
  std::int64_t values[2] = {0, 0};
  for (std::size_t k = 0; k < std::min<std::size_t>(e.operands.size(), 2); ++k) {
    const auto v = plain_value(*e.operands[k], knowing);
    if (!v) return std::nullopt;
    values[k] = *v;
  }
  switch (e.operation) {
    case Operation::convert: return values[0];
    case Operation::mul:
    case Operation::add:
    case Operation::sub: {
      std::int64_t out = 0;
      const bool overflows = e.operation == Operation::mul   ? __builtin_mul_overflow(values[0], values[1], &out)
                             : e.operation == Operation::add ? __builtin_add_overflow(values[0], values[1], &out)
                                                             : __builtin_sub_overflow(values[0], values[1], &out);
      return overflows ? std::nullopt : std::optional(out);
    }
    default: return std::nullopt;
  }
}

/// Whether a fault is to be thought of at all.
bool is_risky(const Expr& e, const Knowing& knowing) {
  return contains(e, [&](const Expr& x) {
    if (x.kind == ExprKind::element) return true;
    if (x.kind == ExprKind::constant || x.kind == ExprKind::parameter) {
      const auto v = is_integer(x.type) ? plain_value(x, knowing) : std::nullopt;
      return v && (*v >= large || *v <= -large);
    }
    if (x.kind != ExprKind::operation) return false;
    if (divides(x.operation) && is_integer(x.type)) return plain_value(*x.operands[1], knowing).value_or(0) == 0;
    return is_shift(x.operation) || x.operation == Operation::pow2;
  });
}

class ClauseSearch {
 public:
  ClauseSearch(const Knowing& knowing, std::size_t clause)
      : whole_(*knowing.statement), clause_(whole_.clauses[clause]), cut_(whole_), knowing_(knowing) {
    cut_.clauses.resize(clause);
    knowing_.statement = &cut_;
  }

  void run() {
    const Formula formula(knowing_);
    const Solver solver(formula);
    Formula::Mask mask = 0;
    for (const ExprPtr& e : expressions_of(clause_)) mask |= formula.mask_of(*e);
    std::optional<EvaluationFault> fault;
    const auto faults = [&](const Box& box) {
      if ((mask & Formula::open_mask(box)) != 0) return StridedInterval{0, 1, 1};
      try {
        evaluate_in(formula, box);
        return StridedInterval::single(0);
      } catch (const EvaluationFault& f) {
        fault = f;
        return StridedInterval::single(1);
      }
    };
    bool is_complete = true;
    const auto box = solver.find(faults, mask, knowing_.state->rank, most_boxes, is_complete);
    if (box) throw SolverFault{*fault, *box};
    if (!is_complete)
      throw SolverFault{
          {"KP-A010",
           "whether this can be evaluated in all environments takes too long to find out; put "
           "the filters that make it safe before it",
           clause_.span},
          Box{std::vector<Progression>(whole_.variables.size() + 1), std::vector<BoxSet>(whole_.variables.size() + 1)}};
  }

 private:
  void evaluate_in(const Formula& formula, const Box& box) const {
    RankState state = *knowing_.state;
    state.size = knowing_.size;
    std::vector<ScalarValue> variables(whole_.variables.size());
    formula.values_at(box, {}, state, variables);
    const EvaluationContext context{.state = &state, .variables = variables.data()};
    if (clause_.kind == ClauseKind::generator) SetValues(clause_.set, context, clause_.span);
    else evaluate(*clause_.expression, context);
  }

  const Statement& whole_;
  const Clause& clause_;
  Statement cut_;
  Knowing knowing_;
};

}  // namespace

void check_clauses(const Knowing& knowing) {
  const Statement& s = *knowing.statement;
  for (std::size_t c = 0; c < s.clauses.size(); ++c) {
    const bool risky = std::ranges::any_of(expressions_of(s.clauses[c]),
                                           [&](const ExprPtr& e) { return is_risky(*with_bindings(e, s), knowing); });
    if (risky) ClauseSearch(knowing, c).run();
  }
}

}  // namespace kplan
