#pragma once
// Which elements of this rank's buffers a statement reads and writes, one by one, so that a halo exchange is not taken
// for one that overwrites what it sends because both ends lie in one array.

#include <map>
#include <utility>
#include <vector>

#include "engine/analysis/strided_region.hpp"
#include "engine/schedule/schedule.hpp"

namespace kplan {

/// Elements of one buffer that tracks name. That sets lie apart mostly shows by strides; where it does not, their
/// elements are told apart by a bit each.
class ElementSet {
 public:
  /// Of a buffer of so many elements of so many bytes.
  ElementSet(std::int64_t extent, std::size_t element_bytes)
      : extent_(extent), element_bytes_(static_cast<std::int64_t>(element_bytes)) {}
  /// What the track names, which must stay where it is.
  void insert(const Piece& piece, const Track& track);
  void insert(ElementSet& other);
  /// Cost: as the numbers of elements, where strides do not show it. True also where there are too many to look.
  bool meets(ElementSet& other);

 private:
  struct Part {
    const Piece* piece;
    const Track* track;
  };
  void insert(std::int64_t first, std::int64_t count);
  void insert_elements(const Part& part);
  bool can_be_told_apart() const;
  void tell_apart();

  std::int64_t extent_, element_bytes_;
  std::int64_t lowest_ = INT64_MAX, highest_ = INT64_MIN;  ///< the first byte and the one behind the last
  std::int64_t element_count_ = 0;                         ///< of all parts
  std::vector<Part> parts_;
  std::vector<StridedRegion> regions_;  ///< by part
  std::vector<std::uint64_t> words_;    ///< bits of all parts; none: they were not needed
};

/// What a statement touches, as closely as it is worth knowing.
class Footprint {
 public:
  explicit Footprint(const PlanModel& plan) : plan_(&plan) {}
  /// The elements of the `contested` buffers and of their planes, and the rest by buffer; all is by buffer where the
  /// pattern varies. The schedule's messages must stay where they are.
  Footprint(const BoundPlan& bound, const StatementSchedule& schedule, const Touched& touched,
            const std::set<int>& contested);

  /// Whether `this` reads something that `other` writes.
  bool reads_of(Footprint& other) { return meet(reads_, other.writes_); }
  bool writes_of(Footprint& other) { return meet(writes_, other.writes_); }
  void add(Footprint& other);

 private:
  /// By the buffer in whose memory they are and the buffer; null: perhaps all of its elements.
  using Elements = std::map<std::pair<int, int>, std::unique_ptr<ElementSet>>;
  bool meet(Elements& a, Elements& b) const;
  static void add(Elements& to, Elements& from);

  const PlanModel* plan_;
  Elements reads_, writes_;
};

}  // namespace kplan
