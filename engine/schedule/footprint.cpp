// How it works: the tracks of a statement's messages are walked, a run of neighbouring elements at a time.
#include "engine/schedule/footprint.hpp"

#include <algorithm>
#include <bit>

namespace kplan {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 24;   ///< walked for one statement
constexpr std::int64_t largest_extent = std::int64_t{1} << 28;  ///< of a buffer whose elements are told apart

std::int64_t elements_of(const std::vector<Message>& messages) {
  std::int64_t out = 0;
  for (const Message& m : messages)
    for (const Transfer& t : m.transfers) out += t.piece.element_count();
  return out;
}

}  // namespace

void ElementSet::insert_run(std::int64_t first, std::int64_t count) {
  while (count > 0) {
    const std::int64_t bit = first % 64, taken = std::min(count, 64 - bit);
    const std::uint64_t ones = taken == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << taken) - 1;
    words_[static_cast<std::size_t>(first / 64)] |= ones << bit;
    first += taken;
    count -= taken;
  }
}

void ElementSet::insert(const ElementSet& other) {
  for (std::size_t k = 0; k < words_.size(); ++k) words_[k] |= other.words_[k];
}

bool ElementSet::meets(const ElementSet& other) const {
  for (std::size_t k = 0; k < words_.size(); ++k)
    if ((words_[k] & other.words_[k]) != 0) return true;
  return false;
}

Footprint::Footprint(const BoundPlan& bound, const StatementSchedule& schedule, const std::set<int>& contested) {
  const Statement& s = bound.model->statements[static_cast<std::size_t>(schedule.statement)];
  const Touched touched = touched_by(*bound.model, s);
  const bool is_close = !schedule.knowledge.is_varying && elements_of(schedule.sends) + elements_of(schedule.receives) +
                                                                  elements_of(schedule.local_send) +
                                                                  elements_of(schedule.local_receive) <=
                                                              most_elements;
  const auto begin = [&](Elements& to, const std::set<int>& buffers) {
    for (const int b : buffers) {
      const std::int64_t extent = bound.state.layouts[static_cast<std::size_t>(b)].extent;
      const bool is_told_apart = is_close && contested.contains(b) && extent <= largest_extent;
      to.emplace(b, is_told_apart ? std::make_unique<ElementSet>(extent) : nullptr);
    }
  };
  begin(reads_, touched.reads);
  begin(writes_, touched.writes);
  if (!is_close || schedule.size == 0) return;
  for (const auto* messages : {&schedule.sends, &schedule.local_send})
    for (const Message& m : *messages)
      for (const Transfer& t : m.transfers) {
        const ValueForm& form = schedule.values[static_cast<std::size_t>(t.reduction)];
        for (std::size_t k = 0; k < form.elements.size(); ++k)
          add_track(reads_, bound, form.elements[k]->id, t.piece, t.piece.tracks[k]);
      }
  for (const auto* messages : {&schedule.receives, &schedule.local_receive})
    for (const Message& m : *messages)
      for (const Transfer& t : m.transfers)
        add_track(writes_, bound, s.reductions[static_cast<std::size_t>(t.reduction)].place->id, t.piece,
                  t.piece.tracks[0]);
}

void Footprint::add_track(Elements& to, const BoundPlan& bound, int buffer, const Piece& piece, const Track& track) {
  ElementSet* const set = to.at(buffer).get();
  if (!set) return;
  const auto size = static_cast<std::int64_t>(bound.model->buffers[static_cast<std::size_t>(buffer)].type.size_bytes);
  const auto add = [&](const auto& number_of) {
    walk_runs(piece, track, size, [&](std::int64_t position, std::int64_t run) {
      set->insert(number_of(position), run);
      return true;
    });
  };
  const auto bits = static_cast<std::uint64_t>(size);
  if (std::has_single_bit(bits)) add([shift = std::countr_zero(bits)](std::int64_t v) { return v >> shift; });
  else add([size](std::int64_t v) { return v / size; });
}

bool Footprint::meet(const Elements& a, const Elements& b) {
  return std::ranges::any_of(a, [&](const auto& entry) {
    const auto found = b.find(entry.first);
    return found != b.end() && (!entry.second || !found->second || entry.second->meets(*found->second));
  });
}

void Footprint::add(Elements& to, const Elements& from) {
  for (const auto& [buffer, elements] : from) {
    const auto [entry, is_new] = to.emplace(buffer, nullptr);
    if (is_new) entry->second = elements ? std::make_unique<ElementSet>(*elements) : nullptr;
    else if (!elements) entry->second.reset();
    else if (entry->second) entry->second->insert(*elements);
  }
}

void Footprint::add(const Footprint& other) {
  add(reads_, other.reads_);
  add(writes_, other.writes_);
}

}  // namespace kplan
