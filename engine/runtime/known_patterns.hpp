#pragma once
// Varying patterns that both ends work out from parameters alone, remembered by the values of these parameters.

#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/runtime/program.hpp"

namespace kplan {

/// What a varying pattern comes to on one rank.
struct FoundPattern {
  std::optional<BoundPlan> bound;  ///< as the statement's group sees it
  StatementSchedule schedule;
  std::optional<StatementProgram> sending, receiving;  ///< once they are made
};

/// Those of one statement. Forgets them all when they become too many, or too long.
class KnownPatterns {
 public:
  KnownPatterns(const PlanModel& plan, const Statement& s);

  /// The pattern of the parameters, with their values set in its kernel calls; null where it is not known.
  FoundPattern* recall(const RankState& state);
  /// Keeps what was found where the last recall() gave nothing, and returns where it lies from now on: still `found`
  /// where it is not kept.
  FoundPattern* keep(FoundPattern& found);

 private:
  using Key = std::vector<std::uint64_t>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  bool can_be_kept_ = false;
  std::vector<int> parameters_;  ///< that decide the pattern
  Key key_;                      ///< their values at the last recall()
  std::unordered_map<Key, FoundPattern, KeyHash> patterns_;
  std::int64_t elements_ = 0;
};

}  // namespace kplan
