// How it works: the ranges of the values that a clause can meet rule out most faults. For each clause left in doubt the
// statement is cut off before it, and the solver looks for an environment of what is left in which the clause faults.
#include "engine/analysis/clause_faults.hpp"

namespace kplan {
namespace {

constexpr std::int64_t most_boxes = std::int64_t{1} << 24;

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
    const Formula::Mask mask =
        clause_.kind == ClauseKind::generator ? formula.mask_of_set(clause_.set) : formula.mask_of(*clause_.expression);
    std::optional<EvaluationFault> fault;
    const auto faults = [&](const Box& box) {
      if (is_safe_in(formula, box)) return StridedInterval::single(0);
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
  bool is_safe_in(const Formula& formula, const Box& box) const {
    return clause_.kind == ClauseKind::generator ? formula.is_safe(clause_.set, box)
                                                 : formula.is_safe(*clause_.expression, box);
  }

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
  const Formula formula(knowing);
  for (const std::size_t c : Solver(formula).doubtful_clauses(knowing.state->rank)) ClauseSearch(knowing, c).run();
}

}  // namespace kplan
