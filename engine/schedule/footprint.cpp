// How it works: of each track it is known how far it reaches, and by what strides. Only where these leave it open
// whether two sets meet are their tracks walked, a run of neighbouring elements at a time.
#include "engine/schedule/footprint.hpp"

#include <algorithm>
#include <bit>

#include "engine/analysis/planes.hpp"

namespace kplan {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 24;   ///< of a set that are told apart
constexpr std::int64_t largest_extent = std::int64_t{1} << 28;  ///< of a buffer whose elements are told apart

}  // namespace

void ElementSet::insert(const Piece& piece, const Track& track) {
  if (piece.element_count() == 0) return;
  regions_.push_back(StridedRegion(piece, track, 1).whole_elements(element_bytes_));
  lowest_ = std::min(lowest_, regions_.back().lowest());
  highest_ = std::max(highest_, regions_.back().highest());
  element_count_ += piece.element_count();
  parts_.push_back({&piece, &track});
  if (!words_.empty()) insert_elements(parts_.back());
}

void ElementSet::insert(ElementSet& other) {
  if (other.parts_.empty()) return;
  if (!words_.empty()) {
    if (other.can_be_told_apart()) {
      other.tell_apart();
      for (std::size_t k = 0; k < words_.size(); ++k) words_[k] |= other.words_[k];
    } else {
      words_.clear();
    }
  }
  lowest_ = std::min(lowest_, other.lowest_);
  highest_ = std::max(highest_, other.highest_);
  element_count_ += other.element_count_;
  parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
  regions_.insert(regions_.end(), other.regions_.begin(), other.regions_.end());
}

bool ElementSet::meets(ElementSet& other) {
  if (lowest_ >= other.highest_ || highest_ <= other.lowest_ || are_surely_apart(regions_, other.regions_))
    return false;
  if (!can_be_told_apart() || !other.can_be_told_apart()) return true;
  tell_apart();
  other.tell_apart();
  for (std::size_t k = 0; k < words_.size(); ++k)
    if ((words_[k] & other.words_[k]) != 0) return true;
  return false;
}

bool ElementSet::can_be_told_apart() const {
  return !words_.empty() || (extent_ <= largest_extent && element_count_ <= most_elements);
}

void ElementSet::tell_apart() {
  if (!words_.empty()) return;
  words_.resize(static_cast<std::size_t>((extent_ + 63) / 64));
  for (const Part& part : parts_) insert_elements(part);
}

void ElementSet::insert_elements(const Part& part) {
  const auto add = [&](const auto& number_of) {
    walk_runs(*part.piece, *part.track, element_bytes_, [&](std::int64_t position, std::int64_t run) {
      insert(number_of(position), run);
      return true;
    });
  };
  const auto bits = static_cast<std::uint64_t>(element_bytes_);
  if (std::has_single_bit(bits)) add([shift = std::countr_zero(bits)](std::int64_t v) { return v >> shift; });
  else add([size = element_bytes_](std::int64_t v) { return v / size; });
}

void ElementSet::insert(std::int64_t first, std::int64_t count) {
  while (count > 0) {
    const std::int64_t bit = first % 64, taken = std::min(count, 64 - bit);
    const std::uint64_t ones = taken == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << taken) - 1;
    words_[static_cast<std::size_t>(first / 64)] |= ones << bit;
    first += taken;
    count -= taken;
  }
}

Footprint::Footprint(const BoundPlan& bound, const StatementSchedule& schedule, const Touched& touched,
                     const std::set<int>& contested)
    : plan_(bound.model.get()) {
  const Statement& s = bound.model->statements[static_cast<std::size_t>(schedule.statement)];
  const auto key = [&](int buffer) { return std::pair(bound.model->storage_of(buffer), buffer); };
  const auto begin = [&](Elements& to, const std::set<int>& buffers) {
    for (const int b : buffers) {
      const auto n = static_cast<std::size_t>(b);
      const bool is_told_apart = !schedule.knowledge.is_varying && contested.contains(bound.model->storage_of(b));
      to.emplace(key(b), is_told_apart ? std::make_unique<ElementSet>(bound.state.layouts[n].extent,
                                                                      bound.model->buffers[n].type.size_bytes)
                                       : nullptr);
    }
  };
  begin(reads_, touched.reads);
  begin(writes_, touched.writes);
  if (schedule.knowledge.is_varying || schedule.size == 0) return;
  const auto add = [&](Elements& to, int buffer, const Piece& piece, const Track& track) {
    if (ElementSet* const set = to.at(key(buffer)).get()) set->insert(piece, track);
  };
  for (const auto* messages : {&schedule.sends, &schedule.local_send})
    for (const Message& m : *messages)
      for (const MessagePart& part : m.parts) {
        const ValueForm& form = schedule.values[static_cast<std::size_t>(part.reduction)];
        for (std::size_t k = 0; k < form.elements.size(); ++k)
          add(reads_, form.elements[k]->id, part.piece, part.piece.tracks[k]);
      }
  for (const auto* messages : {&schedule.receives, &schedule.local_receive})
    for (const Message& m : *messages)
      for (const MessagePart& part : m.parts)
        add(writes_, s.reductions[static_cast<std::size_t>(part.reduction)].place->id, part.piece,
            part.piece.tracks[0]);
}

bool Footprint::meet(Elements& a, Elements& b) const {
  const auto meets = [this](const Elements::value_type& x, const Elements::value_type& y) {
    if (x.first != y.first)  // planes of one buffer may be the same
      return x.first.first == y.first.first && !are_surely_apart(*plan_, x.first.second, y.first.second);
    return !x.second || !y.second || x.second->meets(*y.second);
  };
  return std::ranges::any_of(
      a, [&](const auto& x) { return std::ranges::any_of(b, [&](const auto& y) { return meets(x, y); }); });
}

void Footprint::add(Elements& to, Elements& from) {
  for (const auto& [buffer, elements] : from) {
    const auto [entry, is_new] = to.emplace(buffer, nullptr);
    if (is_new) entry->second = elements ? std::make_unique<ElementSet>(*elements) : nullptr;
    else if (!elements) entry->second.reset();
    else if (entry->second) entry->second->insert(*elements);
  }
}

void Footprint::add(Footprint& other) {
  add(reads_, other.reads_);
  add(writes_, other.writes_);
}

}  // namespace kplan
