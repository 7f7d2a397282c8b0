#pragma once
// Which elements of this rank's buffers a statement reads and writes, one by one, so that a halo exchange is not taken
// for one that overwrites what it sends because both ends lie in one array.

#include <map>
#include <vector>

#include "engine/schedule/schedule.hpp"

namespace kplan {

/// Elements of one buffer, a bit each.
class ElementSet {
 public:
  explicit ElementSet(std::int64_t extent) : words_(static_cast<std::size_t>((extent + 63) / 64)) {}
  void insert(std::int64_t first, std::int64_t count) {
    if (count != 1) return insert_run(first, count);
    words_[static_cast<std::size_t>(first / 64)] |= std::uint64_t{1} << (first % 64);
  }
  void insert(const ElementSet& other);
  bool meets(const ElementSet& other) const;

 private:
  void insert_run(std::int64_t first, std::int64_t count);
  std::vector<std::uint64_t> words_;
};

/// What a statement touches, as closely as it is worth knowing.
class Footprint {
 public:
  Footprint() = default;
  /// The elements of the `contested` buffers, and the rest by buffer. Where the pattern varies, or there are too many
  /// elements, all is by buffer.
  Footprint(const BoundPlan& bound, const StatementSchedule& schedule, const std::set<int>& contested);

  /// Whether `this` reads something that `other` writes.
  bool reads_of(const Footprint& other) const { return meet(reads_, other.writes_); }
  bool writes_of(const Footprint& other) const { return meet(writes_, other.writes_); }
  void add(const Footprint& other);

 private:
  /// By buffer; null: perhaps all of its elements.
  using Elements = std::map<int, std::unique_ptr<ElementSet>>;
  static bool meet(const Elements& a, const Elements& b);
  static void add(Elements& to, const Elements& from);
  void add_track(Elements& to, const BoundPlan& bound, int buffer, const Piece& piece, const Track& track);

  Elements reads_, writes_;
};

}  // namespace kplan
