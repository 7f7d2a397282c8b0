#include "engine/analysis/bound_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/analysis/expressions.hpp"

namespace kplan {
namespace {

Place place_in(const BoundPlan& bound, const Group& g, const RankState& state) {
  try {
    const EvaluationContext context{.state = &state};
    Place out;
    out.color = evaluate_index(*g.color, context);
    if (out.color >= 0) out.key = evaluate_index(*g.key, context);
    return out;
  } catch (const EvaluationFault& f) {
    throw PlanError(
        f.code, fmt::format("plan {}, group `{}` on rank {}: {}", bound.model->name, g.name, state.rank, f.message));
  }
}

}  // namespace

bool takes_part(const BoundPlan& bound, const Statement& s) {
  return s.group < 0 || bound.groups[static_cast<std::size_t>(s.group)];
}

BoundPlan in_group(const BoundPlan& bound, const Statement& s) {
  BoundPlan out = bound;
  if (s.group < 0) return out;
  out.members = bound.groups[static_cast<std::size_t>(s.group)];
  out.state.size = static_cast<std::int64_t>(out.members->size());
  out.state.rank = std::ranges::find(*out.members, bound.world_rank) - out.members->begin();
  return out;
}

std::vector<Place> places_of(const BoundPlan& bound) {
  std::vector<Place> out;
  for (const Group& g : bound.model->groups) out.push_back(place_in(bound, g, bound.state));
  return out;
}

bool is_replayable(const PlanModel& plan, const Group& g) {
  const auto is_private = [&](const Expr& e) {
    return (e.kind == ExprKind::parameter && !plan.parameters[static_cast<std::size_t>(e.id)].is_uniform) ||
           (e.kind == ExprKind::element && !plan.buffers[static_cast<std::size_t>(e.id)].is_uniform);
  };
  return !contains(*g.color, is_private) && !contains(*g.key, is_private);
}

std::vector<Place> replayed_places(const BoundPlan& bound, std::int64_t rank) {
  RankState state = bound.state;
  state.rank = rank;
  std::vector<Place> out;
  for (const Group& g : bound.model->groups)
    out.push_back(is_replayable(*bound.model, g) ? place_in(bound, g, state) : Place{});
  return out;
}

void form_groups(BoundPlan& bound, const std::vector<std::vector<Place>>& places) {
  bound.groups.clear();
  for (std::size_t g = 0; g < bound.model->groups.size(); ++g) {
    const Place mine = places[static_cast<std::size_t>(bound.world_rank)][g];
    bound.groups.emplace_back();
    if (mine.color < 0) continue;
    std::vector<std::pair<std::int64_t, std::int64_t>> members;  // key, rank
    for (std::size_t r = 0; r < places.size(); ++r)
      if (places[r][g].color == mine.color) members.emplace_back(places[r][g].key, static_cast<std::int64_t>(r));
    std::ranges::sort(members);
    auto list = std::make_shared<Members>();
    for (const auto& [key, rank] : members) list->push_back(rank);
    bound.groups.back() = std::move(list);
  }
}

}  // namespace kplan
