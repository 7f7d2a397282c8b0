// How it works: rows cost some nanoseconds for each environment, and the general way tens of microseconds for each run.
// So rows are for where-lists whose environments the general way would take one by one, too, and for those that have
// few of them; where it has closed forms for many, these are better.
#include "engine/runtime/row_choice.hpp"

#include <algorithm>

#include "engine/analysis/enumeration.hpp"
#include "engine/analysis/pattern_finder.hpp"

namespace kplan {
namespace {

bool is_rank_set(const Clause& c) { return c.kind == ClauseKind::generator && c.set.kind == Set::Kind::ranks; }

bool is_plain(const PlanModel& plan, const Statement& s) {
  for (const Variable& v : s.variables)
    if (!is_integer(v.type) && v.type != Scalar::boolean) return false;
  for (std::size_t k = 0; k < s.reductions.size(); ++k) {
    const Reduction& r = s.reductions[k];
    if ((r.is_native && !r.is_assign) || !plain_value(plan, s, r) || !names_strided_runs(plan, *r.place)) return false;
    const bool is_one = is_one_element(plan, *r.place);
    if (!is_one && r.place->element_bytes != r.place_type.size_bytes) return false;
    for (std::size_t other = 0; other < k; ++other)
      if (s.reductions[other].place->id == r.place->id) return false;
  }
  return true;
}

/// Whether there are at most as many environments as ranks, those of turns in one row taken as one.
bool has_few_environments(const Statement& s, int turns) {
  const auto is_generator = [turns](const Clause& c) { return c.kind == ClauseKind::generator && c.variable != turns; };
  return std::ranges::all_of(s.clauses, [&](const Clause& c) { return !is_generator(c) || is_rank_set(c); }) &&
         std::ranges::count_if(s.clauses, is_generator) <= 1;
}

bool are_copies(const Statement& s) {
  return std::ranges::all_of(s.reductions,
                             [](const Reduction& r) { return r.is_assign && r.value_type == r.place_type; });
}

/// Whether contents that vary choose what is sent, or by whom to whom, so that every rank could replay the pattern, but
/// none remember it. What is not just copied is left out: the general way has another order of elements then, and must
/// not be met with letters of rows but where something is wrong.
bool is_new_in_every_run(const PlanModel& plan, const Statement& s) {
  // Where ranks are walked, the general way finds a rank's own environments at once.
  const bool walks_ranks = std::ranges::any_of(s.clauses, is_rank_set);
  return !s.is_pull && !varying_names(plan, s).buffers.empty() &&
         (do_contents_choose_elements(s) || hangs_on_contents(s)) && are_copies(s) &&
         (!walks_ranks ||
          std::ranges::all_of(s.reductions, [](const Reduction& r) { return r.sender->kind == ExprKind::rank; }));
}

const Expr& decider_of(const Statement& s, const Reduction& r) { return s.is_pull ? *r.receiver : *r.sender; }

bool names(const Clause& c, int variable) {
  const auto is_it = [&](const Expr& e) { return e.kind == ExprKind::variable && e.id == variable; };
  const auto is_named = [&](const ExprPtr& e) { return e && contains(*e, is_it); };
  return std::ranges::any_of(
             std::initializer_list<ExprPtr>{c.expression, c.set.first, c.set.last, c.set.step, c.set.buffer},
             is_named) ||
         std::ranges::any_of(c.set.elements, is_named);
}

using Variables = std::vector<int>;

bool names_any(const Expr& e, const Variables& variables) {
  return contains(e, [&](const Expr& x) {
    return x.kind == ExprKind::variable && std::ranges::find(variables, x.id) != variables.end();
  });
}

/// Whether it is the variable, or that and something that names none of `inner`.
bool goes_by_ones(const Expr& e, int variable, const Variables& inner) {
  if (e.kind == ExprKind::variable) return e.id == variable;
  if (e.kind != ExprKind::operation || !e.is_index) return false;
  const auto is_moved = [&](std::size_t by, std::size_t other) {
    return goes_by_ones(*e.operands[by], variable, inner) && !names_any(*e.operands[other], inner);
  };
  return (e.operation == Operation::add && (is_moved(0, 1) || is_moved(1, 0))) ||
         (e.operation == Operation::sub && is_moved(0, 1));
}

/// Whether the elements that the variable chooses lie one after the other in one dimension of a buffer.
bool names_side_by_side(const PlanModel& plan, const Expr& e, int variable, const Variables& inner) {
  if (e.kind != ExprKind::element || plan.is_slice(e) || !plan.buffers[static_cast<std::size_t>(e.id)].strides.empty())
    return false;
  const auto is_fixed = [&](const Subscript& sub) { return !names_any(*sub.lo, inner); };
  const auto moving = std::ranges::find_if_not(e.subscripts, is_fixed);
  return moving != e.subscripts.end() && goes_by_ones(*moving->lo, variable, inner) &&
         std::all_of(moving + 1, e.subscripts.end(), is_fixed);
}

}  // namespace

ExprPtr plain_value(const PlanModel& plan, const Statement& s, const Reduction& r) {
  const auto has_element = [](const Expr& e) { return e.kind == ExprKind::element; };
  const bool is_integral = !r.value->record && (is_integer(r.value->type) || r.value->type == Scalar::boolean) &&
                           r.value->type == r.value_type.scalar;
  if (r.value->kind != ExprKind::element && is_integral && !contains(*r.value, has_element)) return r.value;
  // Only the end that evaluates bindings can put them into the value.
  const ExprPtr value = r.value->kind == ExprKind::element || s.is_pull ? r.value : with_bindings(r.value, s);
  if (value->kind != ExprKind::element || !names_strided_runs(plan, *value)) return nullptr;
  const bool is_one = std::ranges::none_of(value->subscripts, &Subscript::is_slice) && !value->subscripts.empty();
  return is_one || value->element_bytes == r.value_type.size_bytes ? value : nullptr;
}

bool is_one_element(const PlanModel& plan, const Expr& e) { return e.kind != ExprKind::element || !plan.is_slice(e); }

bool goes_by_rows(const PlanModel& plan, const Statement& s) {
  if (s.is_fresh || !is_plain(plan, s)) return false;
  const Knowledge knowledge = infer_knowledge(plan, s);
  if (!is_told(knowledge)) return knowledge.knowledge == KnowledgeClass::global && is_new_in_every_run(plan, s);
  if (hangs_on_contents(s)) return true;
  // Turns that lie side by side at both ends are as slices.
  const std::optional<RowLoop> loop = loop_of_rows(plan, s);
  const int turns = loop && !loop->is_listed ? loop->variable : -1;
  // Rows apply what is not just copied by lists of single elements; the general way has loops.
  const bool has_long_updates = std::ranges::any_of(s.reductions, [&](const Reduction& r) {
    return (!r.is_assign || r.value_type != r.place_type) && (turns >= 0 || !is_one_element(plan, *r.place));
  });
  return !has_long_updates && (do_slices_hang_on_contents(s, turns) || do_contents_choose_elements(s, turns) ||
                               has_few_environments(s, turns));
}

bool goes_by_rows_when_new(const PlanModel& plan, const Statement& s) {
  if (s.is_fresh || s.is_pull || !hangs_on_parameters(plan, s) || !is_plain(plan, s) || !are_copies(s)) return false;
  // Ranks must find alike what is new.
  const auto is_uniform = [&](int p) { return plan.parameters[static_cast<std::size_t>(p)].is_uniform; };
  if (infer_knowledge(plan, s).knowledge != KnowledgeClass::global ||
      !std::ranges::all_of(varying_names(plan, s).parameters, is_uniform))
    return false;
  const std::optional<RowLoop> loop = loop_of_rows(plan, s);
  return has_few_environments(s, loop && !loop->is_listed ? loop->variable : -1);
}

std::optional<RowLoop> loop_of_rows(const PlanModel& plan, const Statement& s) {
  const auto is_generator = [](const Clause& c) { return c.kind == ClauseKind::generator; };
  const auto last = std::find_if(s.clauses.rbegin(), s.clauses.rend(), is_generator);
  if (last == s.clauses.rend() || last->set.kind != Set::Kind::range || !is_by_ones(last->set.step))
    return std::nullopt;
  Variables inner{last->variable};
  for (auto c = s.clauses.rbegin(); c != last; ++c) {
    if (c->kind != ClauseKind::binding) return std::nullopt;
    inner.push_back(c->variable);
  }
  RowLoop out{last->variable};
  for (const Reduction& r : s.reductions) {
    ExprPtr near = plain_value(plan, s, r), far = r.place;
    if (s.is_pull) std::swap(near, far);
    if (names_any(*r.sender, inner) || names_any(*r.receiver, inner) || !is_one_element(plan, *near) ||
        !names_side_by_side(plan, *far, out.variable, inner))
      return std::nullopt;
    out.is_listed = out.is_listed || !names_side_by_side(plan, *near, out.variable, inner);
  }
  return out;
}

Statement with_own_rank(Statement s) {
  const Expr& decider = decider_of(s, s.reductions.front());
  if (decider.kind != ExprKind::variable) return s;
  const int variable = decider.id;
  const auto is_other = [&](const Reduction& r) {
    const Expr& e = decider_of(s, r);
    return e.kind != ExprKind::variable || e.id != variable;
  };
  const auto binds = [&](const Clause& c) { return is_rank_set(c) && c.variable == variable; };
  const auto clause = std::ranges::find_if(s.clauses, binds);
  if (clause == s.clauses.end() || std::ranges::any_of(s.reductions, is_other) ||
      std::ranges::any_of(s.clauses, [&](const Clause& c) { return names(c, variable); }))
    return s;
  Expr own = decider;
  own.kind = ExprKind::rank;
  const auto rank = std::make_shared<const Expr>(std::move(own));
  clause->kind = ClauseKind::binding;
  clause->expression = rank;
  for (Reduction& r : s.reductions) (s.is_pull ? r.receiver : r.sender) = rank;
  return s;
}

}  // namespace kplan
