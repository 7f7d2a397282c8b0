#include "engine/analysis/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/analysis/box_order.hpp"
#include "engine/analysis/box_walker.hpp"

namespace kplan {
namespace {

constexpr std::int64_t most_boxes = std::int64_t{1} << 24;
constexpr std::size_t most_solutions = std::size_t{1} << 21, most_solution_bytes = std::size_t{512} << 20;
constexpr int most_narrowing_rounds = 4;
constexpr std::int64_t most_directions = 8;
constexpr std::int64_t walk_steps_a_box = 512;  // that take about as long as a look at a box

/// `rank`, as an expression to narrow against.
const Expr evaluating_rank = [] {
  Expr e;
  e.kind = ExprKind::rank;
  return e;
}();

using AddSolution = std::function<void(std::int64_t peer, const Box& box)>;

/// The solutions in a box by a walk.
class WalkedSolutions {
 public:
  /// `me` is the rank that decides, or the other one. Solutions go to `add`.
  WalkedSolutions(const Formula& formula, const Expr& decider, const Expr& other, std::int64_t me, bool i_decide,
                  const AddSolution& add)
      : formula_(formula),
        walker_(formula),
        deciders_(walker_.program(decider)),
        others_(walker_.program(other)),
        me_(me),
        i_decide_(i_decide),
        add_(add) {}

  /// Adds those of the box, if its walk does not end before.
  BoxWalker::Outcome find(const Box& box) {
    keys_.clear();
    const Box whole = with_all_sets(formula_, box);
    BoxWalker::Outcome out = walker_.walk(box, [&](Block& block) { take(whole, block); });
    if (out.end != BoxWalker::End::whole) return out;
    for (auto& [peer, keys] : keys_) {
      Box part = whole;
      if (!i_decide_) part.positions[0] = {peer, 1, 1};
      restrict_to(part, std::move(keys));
      add_(peer, part);
    }
    return out;
  }
  std::int64_t steps() const { return walker_.steps(); }

 private:
  void take(const Box& box, Block& block) {
    const std::int64_t size = walker_.state().size;
    const bool is_of_one = box.positions[0].count == 1;
    walker_.keep_where(deciders_, block, [&](std::int64_t decider) {
      return is_of_one ? decider == walker_.state().rank : decider >= 0 && decider < size;
    });
    if (!i_decide_) walker_.keep_where(others_, block, [&](std::int64_t other) { return other == me_; });
    const Column& peers = walker_.values(i_decide_ ? others_ : deciders_, block);
    const std::vector<std::uint64_t>& keys = walker_.keys(box, block);
    std::vector<std::uint64_t>* of_peer = nullptr;
    for (std::size_t row = 0; row < block.count; ++row) {
      if (peers[row] < 0 || peers[row] >= size) throw BlockFault{{}, row};
      if (row == 0 || peers[row] != peers[row - 1]) of_peer = &keys_[peers[row]];
      of_peer->push_back(keys[row]);
    }
  }

  const Formula& formula_;
  BoxWalker walker_;
  ColumnProgram deciders_, others_;
  std::int64_t me_;
  bool i_decide_;
  const AddSolution& add_;
  std::map<std::int64_t, std::vector<std::uint64_t>> keys_;  ///< by peer
};

}  // namespace

/// One search: depth first, the lower half of the first needed variable before the upper, or one residue class of it
/// after the other.
struct Solver::Search {
  explicit Search(const Formula& f) : formula(f) {}

  const Formula& formula;
  const Statement& s = *formula.knowing().statement;
  std::function<bool(Box&)> narrow_ranks;                      ///< false: the box is empty
  std::function<bool(const Box&, Formula::Mask&)> examine;     ///< false: empty; adds what is undecided
  std::function<bool(const Box&)> emit;                        ///< false: stop
  std::vector<const Expr*> ranks;                              ///< that are looked at besides the where-list
  std::function<BoxWalker::Outcome(const Box&)> walk_through;  ///< instead of a split, if any
  std::int64_t budget = most_boxes;
  bool is_stopped = false, is_exhausted = false;
  std::vector<const Expr*> undecided;  ///< what makes the box that is looked at be split

  Box start(std::optional<std::int64_t> evaluator) const {
    Box box;
    box.positions.resize(s.variables.size() + 1);
    box.sets.resize(s.variables.size() + 1);
    for (BoxSet& set : box.sets) set = {true, 0, 1, 1, nullptr, StridedInterval::single(0)};
    box.sets[0].count = formula.knowing().size;
    box.positions[0] = evaluator ? Progression{*evaluator, 1, 1} : Progression{0, 1, formula.knowing().size};
    for (const Clause& c : s.clauses)
      if (c.kind == ClauseKind::generator) box.sets[static_cast<std::size_t>(c.variable) + 1].is_known = false;
    return box;
  }

  /// The first box of `me` that is found.
  std::optional<Box> first(std::int64_t me, std::int64_t most, bool& is_complete) {
    std::optional<Box> found;
    budget = most;
    narrow_ranks = [](Box&) { return true; };
    emit = [&](const Box& box) {
      found = box;
      return false;
    };
    run(start(me));
    is_complete = !is_exhausted;
    return found;
  }

  /// Fills in a generator's set where its bounds are single; else bounds its values. False when it is empty.
  bool settle(const Clause& c, Box& box, Formula::Mask& needs) const {
    const std::size_t n = static_cast<std::size_t>(c.variable) + 1;
    BoxSet& set = box.sets[n];
    if (set.is_known) return true;
    const Formula::Mask open = formula.mask_of_set(c.set) & Formula::open_mask(box);
    if (open == 0) {
      RankState state = *formula.knowing().state;
      state.size = formula.knowing().size;
      std::vector<ScalarValue> variables(s.variables.size());
      formula.values_at(box, {}, state, variables);
      const SetValues values(c.set, {.state = &state, .variables = variables.data()}, c.span);
      if (formula.is_ragged(c.set)) {
        set = every_value;
        box.positions[n] = {values.first(), 1, values.count()};
        return values.count() > 0;
      }
      set.is_known = true;
      set.first = values.first();
      set.step = values.step();
      set.count = values.count();
      if (!values.is_arithmetic()) {
        auto list = std::make_shared<std::vector<std::int64_t>>();
        for (std::int64_t k = 0; k < values.count(); ++k) list->push_back(values[k]);
        const auto [lo, hi] = std::ranges::minmax_element(*list);
        if (!list->empty()) set.hull = StridedInterval::between(*lo, *hi);
        set.list = std::move(list);
      }
      box.positions[n] = {0, 1, set.count};
      return set.count > 0;
    }
    needs |= open;
    if (c.set.kind != Set::Kind::range) {
      set.hull = StridedInterval::unknown();
      return true;
    }
    const StridedInterval a = formula.range_of(*c.set.first, box), b = formula.range_of(*c.set.last, box);
    const StridedInterval step = c.set.step ? formula.range_of(*c.set.step, box) : StridedInterval::single(1);
    set.hull = step.lo > 0 && a.lo <= b.hi ? StridedInterval::between(a.lo, b.hi)
                                           : StridedInterval::between(std::min(a.lo, b.lo), std::max(a.hi, b.hi));
    return !(step.lo > 0 && a.lo > b.hi);
  }

  /// One pass over the where-list. False when no environment of the box passes. `needs`: what must be split.
  bool constrain(Box& box, Formula::Mask& needs) {
    for (const Clause& c : s.clauses) {
      try {
        if (c.kind == ClauseKind::binding) {
          formula.range_of(*c.expression, box);  // used or not, it is evaluated
          continue;
        }
        if (c.kind == ClauseKind::generator) {
          if (!settle(c, box, needs)) return false;
          continue;
        }
        if (!formula.narrow_true(*c.expression, box)) return false;
        const StridedInterval truth = formula.range_of(*c.expression, box);
        if (truth.is_single() && truth.lo == 0) return false;
        if (!truth.is_single()) await(*c.expression, needs);
      } catch (const EvaluationFault& f) {
        // Before this clause is evaluated, earlier filters must pass; while that is open it may not be reached.
        if (needs == 0) throw SolverFault{f, box};
        needs |= c.kind == ClauseKind::generator ? formula.mask_of_set(c.set) : formula.mask_of(*c.expression);
      }
    }
    return true;
  }

  void await(const Expr& e, Formula::Mask& needs) {
    needs |= formula.mask_of(e);
    undecided.push_back(&e);
  }

  void run(Box box) {
    if (is_stopped) return;
    if (--budget < 0) {
      is_exhausted = is_stopped = true;
      return;
    }
    Formula::Mask needs = 0;
    for (int round = 0; round < most_narrowing_rounds; ++round) {
      needs = 0;
      const std::vector<Progression> before = box.positions;
      if (!constrain(box, needs) || !narrow_ranks(box)) return;
      if (box.positions == before) break;
    }
    needs = 0;
    undecided.clear();
    if (!constrain(box, needs)) return;
    try {
      if (!examine(box, needs)) return;
    } catch (const EvaluationFault& f) {
      if (needs == 0) throw SolverFault{f, box};
      needs |= Formula::open_mask(box);
    }
    const Formula::Mask open = Formula::open_mask(box);
    if ((needs & open) == 0) {
      if (!emit(box)) is_stopped = true;
      return;
    }
    if (walk_through && is_to_be_walked(formula, box, needs, undecided, ranks)) {
      BoxWalker::Outcome outcome = walk_through(box);
      if (outcome.end == BoxWalker::End::whole) return;
      walk_through = nullptr;
      if (outcome.faulty) return run_faulty(std::move(*outcome.faulty));
    }
    const std::size_t n = choose(box, needs);
    const Progression whole = box.positions[n];
    const auto run_part = [&](std::int64_t first, std::int64_t step, std::int64_t count) {
      Box part = box;
      part.positions[n] = {whole[first], count == 1 ? 1 : whole.step * step, count};
      run(std::move(part));
    };
    if (const std::int64_t period = period_of(n, box); period > 1) {
      for (std::int64_t k = 0; k < period && !is_stopped; ++k)
        run_part(k, period, (whole.count - k + period - 1) / period);
      return;
    }
    const std::int64_t lower = whole.count / 2;
    run_part(0, 1, lower);
    run_part(lower, 1, whole.count - lower);
  }

  /// A box in which something is wrong, which is met and told, or found, here.
  void run_faulty(Box box) {
    run(std::move(box));
    if (!is_stopped) throw InternalError("KP-I013", fmt::format("statement {}: a fault is not met twice", s.name));
  }

  /// How many residue classes of a number decide more than halves of it would: x % m is one value in each where x grows
  /// by one, and x / m grows evenly then, which tells which blocks of m go to one rank of several. 1: halves are
  /// better.
  std::int64_t period_of(std::size_t n, const Box& box) const {
    if (n == 0) return 1;  // solutions are in the order of the evaluator
    for (std::size_t v = n + 1; v < box.sets.size(); ++v)
      if (!box.sets[v].is_known) return 1;  // a set's bounds may wait for single values
    const std::int64_t count = box.positions[n].count;
    std::int64_t out = count;
    try {
      for (const Expr* e : undecided) add_period(*e, n, box, {.is_value = is_integer(e->type)}, out);
    } catch (const EvaluationFault&) {
      return 1;  // in a part that may not be evaluated at all
    }
    return 2 * out <= count ? out : 1;
  }

  /// Where a quotient or remainder stands.
  struct Place {
    bool is_value = false;         ///< what counts is which value it has, not whether it is above or below some other
    bool is_in_remainder = false;  ///< of which it is in the dividend
  };

  /// Makes `shortest` the period of a quotient or remainder in the expression, if that is shorter.
  void add_period(const Expr& e, std::size_t n, const Box& box, Place place, std::int64_t& shortest) const {
    if (((formula.mask_of(e) >> n) & 1) == 0) return;
    if (e.kind == ExprKind::variable && formula.binding_of(e.id))
      return add_period(*formula.binding_of(e.id), n, box, place, shortest);
    const bool is_operation = e.kind == ExprKind::operation,
               is_remainder = is_operation && e.operation == Operation::mod,
               is_quotient = is_operation && e.operation == Operation::div;
    if (is_remainder || (is_quotient && place.is_in_remainder)) {
      const StridedInterval m = formula.range_of(*e.operands[1], box);
      if (!m.is_single() || m.lo <= 0) return;
      if (const auto dividend = formula.affine(*e.operands[0], box)) {
        const std::int64_t period = m.lo / std::gcd(m.lo, dividend->coefficients[n]);
        // Halves find blocks of one quotient, and of remainders on one side of a value, too.
        const bool are_few = period <= box.positions[n].count / period;
        if (period > 1 && (are_few || (is_remainder && place.is_value))) shortest = std::min(shortest, period);
        return;
      }
    }
    if (is_operation && e.operation == Operation::eq) place.is_value = true;
    else if (is_quotient || e.type == Scalar::boolean) place.is_value = false;
    place.is_in_remainder = place.is_in_remainder || is_remainder;
    for (const ExprPtr& o : e.operands) add_period(*o, n, box, place, shortest);
  }

  /// The number to split: the first that is needed and known (sets that are not known yet wait for what they depend on,
  /// which stands before). The evaluator may wait, since solutions are sorted by it afterwards: directions (-1 ... 1)
  /// and the like go first, for with them open nothing tells one evaluator from its neighbours.
  std::size_t choose(const Box& box, Formula::Mask needs) const {
    const auto can_split = [&](std::size_t n) {
      return ((needs >> n) & 1) != 0 && box.sets[n].is_known && box.positions[n].count > 1;
    };
    std::size_t first = 1;
    while (first < box.positions.size() && !can_split(first)) ++first;
    const bool has_variable = first < box.positions.size();
    if (can_split(0)) return has_variable && box.positions[first].count <= most_directions ? first : 0;
    if (has_variable) return first;
    throw InternalError("KP-I010", fmt::format("statement {}: the where-list cannot be solved", s.name));
  }
};

std::vector<Solution> Solver::solve(const Question& q) const {
  const Statement& s = *formula_.knowing().statement;
  const Expr& sender = *q.reduction->sender;
  const Expr& receiver = *q.reduction->receiver;
  const Expr& decider = s.is_pull ? receiver : sender;  // who evaluates
  const Expr& other = s.is_pull ? sender : receiver;
  const bool i_decide = q.as_sender != s.is_pull;
  const std::int64_t size = formula_.knowing().size;
  std::vector<Solution> out;
  Search search(formula_);
  search.narrow_ranks = [&](Box& box) {
    if (!formula_.narrow_equal(decider, evaluating_rank, box)) return false;
    return i_decide || formula_.narrow(other, StridedInterval::single(q.me), box);
  };
  search.examine = [&](const Box& box, Formula::Mask& needs) {
    const StridedInterval who = formula_.range_of_number(0, box);
    const StridedInterval decides = formula_.range_of(decider, box);
    if (are_disjoint(who, decides)) return false;
    if (!who.is_single()) needs |= 1;
    if (!decides.is_single()) search.await(decider, needs);
    const StridedInterval peer = formula_.range_of(other, box);
    if (!i_decide && !peer.contains(q.me)) return false;
    if (!peer.is_single()) search.await(other, needs);
    return true;
  };
  const AddSolution add = [&](std::int64_t peer, const Box& box) {
    if (peer < 0 || peer >= size)
      throw SolverFault{rank_outside_group(s.is_pull ? "sender" : "receiver", peer, size, other.span), box};
    const std::size_t bytes = sizeof(Solution) + box.sets.size() * (sizeof(Progression) + sizeof(BoxSet));
    if (out.size() == std::min(most_solutions, most_solution_bytes / bytes))
      throw SolverFault{
          {"KP-A010", fmt::format("the where-list falls apart into more than {} pieces", out.size()), other.span}, box};
    out.push_back({peer, box});
  };
  search.emit = [&](const Box& box) {
    add(i_decide ? formula_.range_of(other, box).lo : formula_.range_of_number(0, box).lo, box);
    return true;
  };
  std::optional<WalkedSolutions> walked;
  search.ranks = {&decider, &other};
  search.walk_through = [&](const Box& box) {
    if (!walked) walked.emplace(formula_, decider, other, q.me, i_decide, add);
    BoxWalker::Outcome outcome = walked->find(box);
    search.budget -= walked->steps() / walk_steps_a_box;
    return outcome;
  };
  search.run(search.start(i_decide ? std::optional(q.me) : std::nullopt));
  if (search.is_exhausted)
    throw SolverFault{{"KP-A010", "the where-list takes more than 2^24 steps to solve",
                       s.clauses.empty() ? Span{} : s.clauses[0].span},
                      search.start(q.me)};
  return out;
}

std::vector<std::size_t> Solver::doubtful_clauses(std::int64_t me) const {
  const Search search(formula_);
  const Statement& s = *formula_.knowing().statement;
  Box box = search.start(me);
  std::vector<std::size_t> out;
  for (std::size_t k = 0; k < s.clauses.size(); ++k) {
    const Clause& c = s.clauses[k];
    const bool is_safe =
        c.kind == ClauseKind::generator ? formula_.is_safe(c.set, box) : formula_.is_safe(*c.expression, box);
    if (!is_safe) out.push_back(k);
    Formula::Mask needs = 0;
    try {
      const bool can_pass = c.kind == ClauseKind::generator ? search.settle(c, box, needs)
                            : c.kind == ClauseKind::filter  ? formula_.narrow_true(*c.expression, box)
                                                            : true;
      if (!can_pass) break;
    } catch (const EvaluationFault&) {
      // A set that cannot be worked out: what depends on it is in doubt, unless this clause faults already.
      if (c.kind == ClauseKind::generator)
        box.sets[static_cast<std::size_t>(c.variable) + 1].hull = StridedInterval::unknown();
    }
  }
  return out;
}

std::optional<Box> Solver::find(const std::function<StridedInterval(const Box&)>& condition, Formula::Mask depends,
                                std::int64_t me, std::int64_t budget, bool& is_complete) const {
  Search search(formula_);
  search.examine = [&](const Box& box, Formula::Mask& needs) {
    const StridedInterval truth = condition(box);
    if (truth.is_single() && truth.lo == 0) return false;
    if (!truth.is_single()) needs |= depends;
    return true;
  };
  return search.first(me, budget, is_complete);
}

std::optional<Box> Solver::find_outside(const Expr& ranks, std::int64_t me, std::int64_t budget,
                                        bool& is_complete) const {
  const std::int64_t size = formula_.knowing().size;
  Search search(formula_);
  search.examine = [&](const Box& box, Formula::Mask& needs) {
    const StridedInterval v = formula_.range_of(ranks, box);
    if (v.lo >= 0 && v.hi < size) return false;
    if (v.lo < size && v.hi >= 0) search.await(ranks, needs);
    return true;
  };
  search.ranks = {&ranks};
  search.walk_through = [&](const Box& whole) {
    BoxWalker walker(formula_);
    ColumnProgram program = walker.program(ranks);
    auto outcome = walker.walk(whole, [&](Block& block) {
      const Column& values = walker.values(program, block);
      for (std::size_t row = 0; row < block.count; ++row)
        if (values[row] < 0 || values[row] >= size) throw BlockFault{{}, row};
    });
    search.budget -= walker.steps() / walk_steps_a_box;
    return outcome;
  };
  return search.first(me, budget, is_complete);
}

}  // namespace kplan
