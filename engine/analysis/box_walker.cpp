#include "engine/analysis/box_walker.hpp"

#include <algorithm>

#include "engine/analysis/box_order.hpp"

namespace kplan {
namespace {

/// Whether a sum of numbers takes so many values in the box that to split it until one is left is slow.
bool takes_many_values(const Formula& formula, const Expr& e, const Box& box) {
  constexpr Wide few = 64;
  const auto form = formula.affine(e, box);
  Wide count = 1;
  for (std::size_t n = 0; form && n < box.positions.size() && count <= few; ++n)
    if (form->coefficients[n] != 0) count *= box.positions[n].count;
  return count > few;
}

/// Whether halves of the box say no more of the expression, until they are single environments: it hangs on contents,
/// or on an operation on many values of which intervals say nothing.
bool is_opaque(const Formula& formula, const Expr& e, const Box& box, Formula::Mask open) {
  if ((formula.mask_of(e) & open) == 0) return false;
  if (e.kind == ExprKind::element) return true;
  const auto opaque = [&](const Expr& x) { return is_opaque(formula, x, box, open); };
  if (e.kind == ExprKind::variable) {
    const Expr* binding = formula.binding_of(e.id);
    return binding ? opaque(*binding) : box.sets[static_cast<std::size_t>(e.id) + 1].list != nullptr;
  }
  const bool is_followed =
      e.kind != ExprKind::operation || e.type == Scalar::boolean || (is_integral(e) && follows_intervals(e.operation));
  return std::ranges::any_of(e.operands, [&](const ExprPtr& o) {
    return opaque(*o) || (!is_followed && takes_many_values(formula, *o, box));
  });
}

/// Whether environments may differ by who evaluates them.
bool is_evaluator_named(const Formula& formula, const std::vector<const Expr*>& ranks) {
  Formula::Mask named = 0;
  for (const Expr* e : ranks) named |= formula.mask_of(*e);
  for (const Clause& c : formula.knowing().statement->clauses)
    named |= c.kind == ClauseKind::generator ? formula.mask_of_set(c.set) : formula.mask_of(*c.expression);
  return (named & 1) != 0;
}

}  // namespace

bool is_to_be_walked(const Formula& formula, const Box& box, Formula::Mask needs,
                     const std::vector<const Expr*>& undecided, const std::vector<const Expr*>& ranks) {
  constexpr std::int64_t fewest = 8, most = std::int64_t{1} << 28;
  constexpr std::int64_t most_mixed = std::int64_t{1} << 16;  // where splits may decide some of what is undecided
  constexpr std::int64_t most_idle = 64;                      // environments that differ in what nothing waits for
  const Formula::Mask open = Formula::open_mask(box);
  const auto opaque = [&](const Expr* e) { return is_opaque(formula, *e, box, open); };
  bool are_sets_opaque = false;
  Wide count = 1, idle = 1, keys = 1;
  for (const Clause& c : formula.knowing().statement->clauses) {
    if (c.kind != ClauseKind::generator) continue;
    const std::size_t n = static_cast<std::size_t>(c.variable) + 1;
    if (!box.sets[n].is_known) {
      if (!formula.is_ragged(c.set)) return false;
      are_sets_opaque = are_sets_opaque || opaque(c.set.first.get()) || opaque(c.set.last.get());
      keys = std::min<Wide>(keys * (Wide{box.sets[n].hull.hi} - box.sets[n].hull.lo + 1), INT64_MAX);
      continue;
    }
    count = std::min<Wide>(count * box.positions[n].count, most + 1);
    keys = std::min<Wide>(keys * box.positions[n].count, INT64_MAX);
    if (((needs >> n) & 1) == 0) idle = std::min<Wide>(idle * box.positions[n].count, most_idle + 1);
  }
  if (count < fewest || count > most || idle > most_idle || keys >= INT64_MAX) return false;
  if (!are_sets_opaque && std::ranges::none_of(undecided, opaque)) return false;
  if (count > most_mixed && !std::ranges::all_of(undecided, opaque)) return false;
  return box.positions[0].count == 1 || !is_evaluator_named(formula, ranks);
}

Box with_all_sets(const Formula& formula, Box box) {
  for (const Clause& c : formula.knowing().statement->clauses) {
    if (c.kind != ClauseKind::generator) continue;
    const std::size_t n = static_cast<std::size_t>(c.variable) + 1;
    if (box.sets[n].is_known) continue;
    const StridedInterval hull = box.sets[n].hull;
    box.sets[n] = every_value;
    box.positions[n] = {hull.lo, 1, hull.hi - hull.lo + 1};
  }
  return box;
}

BoxWalker::BoxWalker(const Formula& formula)
    : s_(*formula.knowing().statement), state_(*formula.knowing().state), walk_(s_, state_) {
  state_.size = formula.knowing().size;
  walk_.want_positions();
}

BoxWalker::Outcome BoxWalker::walk(const Box& box, const std::function<void(Block&)>& f) {
  constexpr std::int64_t most_repeated = 256;  // by sets that are not known
  state_.rank = Formula::value_at(box, 0, box.positions[0].first);
  Wide most_steps = most_repeated * (std::ssize(s_.clauses) + 1);
  for (std::size_t n = 1; n < box.positions.size(); ++n)
    if (box.sets[n].is_known) most_steps *= box.positions[n].count;
  try {
    return {walk_.each(box, static_cast<std::int64_t>(most_steps), f) ? End::whole : End::early};
  } catch (const WalkFault& fault) {
    Box part = box;
    int bound_count = 0;
    for (const Clause& c : s_.clauses) {
      if (c.kind == ClauseKind::filter) continue;
      if (bound_count++ == fault.bound_count) break;
      const auto v = static_cast<std::size_t>(c.variable);
      if (c.kind == ClauseKind::generator) part.positions[v + 1] = {fault.positions[v], 1, 1};
    }
    return {End::faulty, std::move(part)};
  }
}

const Column& BoxWalker::values(ColumnProgram& program, const Block& block) {
  walk_.columns().run(program, block, room_in(values_, block.count));
  return values_;
}

const std::vector<std::uint64_t>& BoxWalker::keys(const Box& box, const Block& block) {
  keys_.assign(block.count, 0);
  for (std::size_t n = 1; n < box.positions.size(); ++n) {
    const Progression p = box.positions[n];
    if (p.count == 1) continue;
    const Column& positions = block.positions[n - 1];
    const auto count = static_cast<std::uint64_t>(p.count);
    for (std::size_t row = 0; row < block.count; ++row) {
      const std::int64_t distance = positions[row] - p.first;
      keys_[row] = keys_[row] * count + static_cast<std::uint64_t>(p.step == 1 ? distance : distance / p.step);
    }
  }
  return keys_;
}

void restrict_to(Box& box, std::vector<std::uint64_t> only) {
  if (environment_count(box, INT64_MAX) == std::ssize(only)) return;
  const auto is_open = [](const Progression& p) { return p.count > 1; };
  if (std::ranges::count_if(box.positions, is_open) == 1) {
    const std::uint64_t step = only.size() > 1 ? only[1] - only[0] : 1;
    const auto differs = [&](std::uint64_t a, std::uint64_t b) { return b - a != step; };
    if (std::ranges::adjacent_find(only, differs) == only.end()) {
      Progression& p = *std::ranges::find_if(box.positions, is_open);
      p = {p[static_cast<std::int64_t>(only[0])], only.size() > 1 ? p.step * static_cast<std::int64_t>(step) : 1,
           std::ssize(only)};
      return;
    }
  }
  box.only = std::make_shared<const std::vector<std::uint64_t>>(std::move(only));
}

}  // namespace kplan
