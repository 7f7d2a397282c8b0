#pragma once
// The pattern of one statement by solving its where-list; what pattern.hpp offers is made of this.

#include <map>

#include "engine/analysis/box_order.hpp"
#include "engine/analysis/conformity.hpp"

namespace kplan {

class PatternFinder {
 public:
  PatternFinder(const BoundPlan& bound, const Statement& s, const Knowledge& knowledge);

  /// What this rank sends, or receives.
  std::vector<Flow> flows(bool as_sender);
  /// What this rank sends (push) or receives (pull), and what the other ends must be told of it.
  OwnHalf own_half();
  const std::vector<ValueForm>& values() const { return values_; }

  /// Language.md section 3: a deciding rank outside the group is an error, on whichever rank evaluates it.
  void check_deciders() const;

  /// Calls f(peer, box) for what this rank receives by one reduction.
  template <class F>
  void each_received(std::size_t k, const F& f) const {
    for (const Solution& solution : solver_.solve({&s_.reductions[k], bound_.state.rank, false}))
      f(solution.peer, solution.box);
  }
  /// See ReceivedEnvironments.
  std::vector<EnvironmentKey> keys(std::size_t k, std::int64_t sender);
  std::string text_at(std::size_t k, std::int64_t sender, std::int64_t offset_bytes, int occurrence);

  /// Throws the fault as an error that names the environment.
  [[noreturn]] void rethrow(const SolverFault& f) const;

 private:
  std::map<std::int64_t, std::vector<Box>> boxes_by_peer(const Reduction& r, bool as_sender) const;
  std::vector<Notice> notices();
  OwnHalf enumerated_half();
  void add_reduction(std::size_t k, bool as_sender, std::map<std::int64_t, Flow>& flows);
  std::vector<TrackSource> sources_of(std::size_t k, bool as_sender) const;
  /// What the end that does not evaluate the where-list needs, and how many elements there are.
  std::vector<TrackSource> told_sources(std::size_t k, bool as_sender) const;
  std::vector<TrackSource> notice_sources(std::size_t k) const;
  std::vector<const Expr*> counted(std::size_t k, bool as_sender) const;
  std::vector<std::int64_t> place_at(std::size_t k, const Box& box, const std::vector<std::int64_t>& indices);
  Box box_of(std::int64_t evaluator) const;

  const BoundPlan& bound_;
  const Statement& s_;
  Formula formula_;
  Solver solver_;
  PieceMaker pieces_;
  Conformity conformity_;
  bool is_told_, compares_ends_;
  std::vector<ValueForm> values_;
  std::vector<ExprPtr> places_;  ///< as this rank evaluates them
};

/// The error for a fault met in an environment, as the reference interpreter words it.
[[noreturn]] void throw_fault(const BoundPlan& bound, const Statement& s, const EvaluationFault& f,
                              const std::string& environment);

/// Calls f(finder) and turns its faults into errors.
template <class F>
auto with_finder(const BoundPlan& bound, const Statement& s, const Knowledge& knowledge, const F& f) {
  PatternFinder finder(bound, s, knowledge);
  try {
    return f(finder);
  } catch (const SolverFault& fault) {
    finder.rethrow(fault);
  } catch (const EvaluationFault& fault) {
    throw_fault(bound, s, fault, "");
  }
}

/// The where-bound variables that the end which does not evaluate the where-list uses in a reduction, ascending.
std::vector<int> told_variables(const Statement& s, const Reduction& r);
/// Whether a notice has the positions of generators.
bool tells_positions(const Statement& s);
std::vector<int> generators_of(const Statement& s);

/// Throws SolverFault KP-A011 where a segment is larger than what one message can have.
void limit_segment(const Segment& segment, const Reduction& r, const Box& box);

}  // namespace kplan
