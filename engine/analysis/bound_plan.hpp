#pragma once
// A plan with one rank's values: what analysis starts from; and the groups that the rank is in (language.md section 1).

#include <algorithm>
#include <memory>
#include <vector>

#include "plans/evaluate.hpp"

namespace kplan {

/// The world ranks of a group in the order of their numbers in it.
using Members = std::vector<std::int64_t>;

/// Contents are known of fixed buffers only, or during a run of a statement with a varying pattern.
struct BoundPlan {
  std::shared_ptr<const PlanModel> model;
  RankState state;  ///< its rank and size are those of the statement at hand: numbers in its group
  std::int64_t world_rank = 0, world_size = 1;
  std::vector<std::shared_ptr<const Members>> groups;  ///< by group of the plan: this rank's own; null: it is in none
  std::shared_ptr<const Members> members;              ///< of the statement at hand; null: the world

  std::int64_t world_rank_of(std::int64_t number) const {
    return members ? (*members)[static_cast<std::size_t>(number)] : number;
  }
  /// Of a member, in the group.
  std::int64_t number_of(std::int64_t member) const {
    return members ? std::ranges::find(*members, member) - members->begin() : member;
  }
  std::int64_t my_world_rank() const { return world_rank_of(state.rank); }
};

/// Whether this rank takes part in the statement.
bool takes_part(const BoundPlan& bound, const Statement& s);

/// The plan as the statement sees it: `rank` and `size` are its group's. The rank takes part in it.
BoundPlan in_group(const BoundPlan& bound, const Statement& s);

/// Where one rank stands in each group of a plan: MPI's colour and key.
struct Place {
  std::int64_t color = -1, key = 0;
};
/// Throws PlanError where an expression has no value.
std::vector<Place> places_of(const BoundPlan& bound);

/// Whether every rank can work out every rank's colour and key in the group.
bool is_replayable(const PlanModel& plan, const Group& g);

/// The places of a rank, where the groups can be replayed; others are left in no group.
std::vector<Place> replayed_places(const BoundPlan& bound, std::int64_t rank);

/// Makes the rank's groups from the places of all ranks, [rank][group].
void form_groups(BoundPlan& bound, const std::vector<std::vector<Place>>& places);

}  // namespace kplan
