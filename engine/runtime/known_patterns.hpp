#pragma once
// Varying patterns that both ends work out from parameters alone, remembered by the values of the expressions in which
// these stand: the owner `k % size` of a panel has few, whatever k. Where the parameters are uniform, all ranks meet
// the same values in the same runs, so that they can agree, once for each, that a pattern is right on all of them: from
// then on it is settled, and a rank that sends and one that receives need nobody else to know of each other.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/analysis/index_program.hpp"
#include "engine/analysis/knowledge.hpp"
#include "engine/runtime/found_pattern.hpp"

namespace kplan {

/// Those of one statement that both ends work out. Forgets them all when they become too many, or too long.
class KnownPatterns {
 public:
  /// `most_new`: patterns are new so many times.
  KnownPatterns(const BoundPlan& bound, const Statement& s, int most_new);

  /// The pattern of the parameters, with their values set in its kernel calls; null where it is not known.
  FoundPattern* recall(const RankState& state);
  /// Keeps what was found where the last recall() gave nothing, and returns where it lies from now on: still `found`
  /// where it is not kept.
  FoundPattern* keep(FoundPattern& found);

  /// Whether patterns can be settled.
  bool can_settle() const { return can_settle_; }
  enum class Standing : std::uint8_t { is_new, was_met, is_settled };  ///< met often enough
  /// What the ranks know together of the values of the last recall(), which counts as one more meeting; the same on all
  /// of them. For can_settle().
  Standing meet();
  /// All ranks have found the pattern of the last recall() right.
  void settle() { meetings_[key_] = settled; }

 private:
  using Key = std::vector<std::uint64_t>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  /// An expression, as steps where there are some.
  struct Deciding {
    VaryingExpression expression;
    IndexProgram value;
    std::int64_t modulus = 0;  ///< 0: the whole value matters
  };
  void find_key(const RankState& state);
  ScalarValue value_of(const Deciding& e, const RankState& state) const;

  bool can_be_kept_ = false, can_settle_ = false;
  std::vector<int> parameters_;     ///< that decide the pattern
  std::vector<Deciding> deciding_;  ///< expressions in which they do
  Key key_;                         ///< their values at the last recall()
  std::unordered_map<Key, FoundPattern, KeyHash> patterns_;
  std::int64_t elements_ = 0;
  static constexpr int settled = -1;
  int most_new_;
  std::unordered_map<Key, int, KeyHash> meetings_;  ///< how many, or `settled`
};

}  // namespace kplan
