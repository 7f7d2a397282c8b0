// How it works: every place a rank receives into is stamped with the piece that writes it, in the order in which
// language.md section 3 applies transfers. A second assign is an error; a place met twice makes the order matter;
// with `fresh`, the first to meet a place assigns. Where strides or one bit for each place show that all differ,
// nothing is stamped.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "engine/analysis/strided_region.hpp"
#include "engine/schedule/schedule.hpp"

namespace kplan {
namespace {

constexpr std::int64_t most_stamped = std::int64_t{1} << 30;

/// What is met of one buffer, cut into slots: a field of a record each, or as many bytes of other elements as are
/// always met together.
struct Slots {
  std::int64_t origin = 0, lowest = 0, highest = 0;  ///< byte positions: where a slot begins, the first, the last
  std::int64_t bytes = 0, fields = 1;                ///< of what lies between two cuts
  std::int64_t meetings = 0;                         ///< of elements, all together

  std::int64_t count() const { return ((highest - lowest) / bytes + 1) * fields; }
  bool are_dense() const { return count() <= std::max<std::int64_t>(64 * meetings, 1 << 16); }
};

/// Whether the innermost dimension is elements side by side.
bool has_runs(const Piece& p, std::int64_t element_bytes) {
  return !p.counts.empty() && p.tracks[0].strides.back() == element_bytes;
}

/// The bytes of one run of them, or of an element.
std::int64_t run_bytes(const Piece& p, std::int64_t element_bytes) {
  return has_runs(p, element_bytes) ? p.counts.back() * element_bytes : element_bytes;
}

/// The most bytes that divide `bytes`, the runs of the place, and their distances from `origin`.
std::int64_t common_bytes(std::int64_t bytes, const Piece& p, std::int64_t element_bytes, std::int64_t origin) {
  const Track& track = p.tracks[0];
  bytes = std::gcd(bytes, run_bytes(p, element_bytes));
  const std::size_t dimensions = p.counts.size() - (has_runs(p, element_bytes) ? 1 : 0);
  for (std::size_t d = 0; d < dimensions; ++d) bytes = std::gcd(bytes, track.strides[d]);
  if (!track.is_listed()) return std::gcd(std::gcd(bytes, track.bases[0] - origin), track.step);
  for (const std::int64_t base : track.bases) {
    if (bytes == element_bytes) break;
    if ((base - origin) % bytes != 0) bytes = std::gcd(bytes, base - origin);
  }
  return bytes;
}

/// A number for each slot of a buffer, dense or sparse by how many are met.
class Stamps {
 public:
  explicit Stamps(const Slots& slots) {
    if (slots.are_dense()) dense_.assign(static_cast<std::size_t>(slots.count()), 0);
  }
  std::uint32_t& operator[](std::int64_t slot) {
    return dense_.empty() ? sparse_[slot] : dense_[static_cast<std::size_t>(slot)];
  }

 private:
  std::vector<std::uint32_t> dense_;
  std::unordered_map<std::int64_t, std::uint32_t> sparse_;
};

/// The piece that a stamp is of.
struct Stamper {
  std::size_t flow = 0;
  int reduction = 0;
};

class Ordering {
 public:
  Ordering(const BoundPlan& bound, const Statement& s, std::vector<Flow> receives,
           const ReceivedEnvironments& environments)
      : bound_(bound), s_(s), receives_(std::move(receives)), environments_(environments) {}

  Applications order() {
    for (Flow& flow : receives_) {
      out_.messages.push_back(message_of(s_, flow));
      for (MessagePart& part : out_.messages.back().parts) part.is_assign = reduction(part).is_assign;
    }
    bool are_distinct = are_surely_distinct();
    if (!are_distinct) {
      limit();
      find_slots();
      are_distinct = are_found_distinct();
    }
    if (are_distinct) {
      for (Message& m : out_.messages)
        for (MessagePart& part : m.parts) part.is_assign = part.is_assign || s_.is_fresh;
      return std::move(out_);
    }
    stamp(/*checks=*/true);
    interleave();
    if (s_.is_fresh) split_first();
    // `fresh` must know who is first.
    out_.is_in_sender_order = meets_twice_ && (!s_.is_any_order || s_.is_fresh);
    return std::move(out_);
  }

 private:
  const Reduction& reduction(const MessagePart& part) const {
    return s_.reductions[static_cast<std::size_t>(part.reduction)];
  }

  /// What cannot be seen from strides is looked at place by place.
  void limit() const {
    std::int64_t count = 0;
    for (const Message& m : out_.messages) count += m.element_count;
    if (count > most_stamped)
      throw error_in(*bound_.model, s_, s_.reductions[0].span, "KP-A011",
                     fmt::format("rank {} receives {} elements into places that may meet, at most {} are looked at",
                                 bound_.my_world_rank(), count, most_stamped));
  }

  bool are_surely_distinct() const {
    for (const Message& m : out_.messages)
      for (const MessagePart& part : m.parts) {
        const auto size = static_cast<std::int64_t>(reduction(part).place_type.size_bytes);
        if (!is_surely_injective(part.piece, part.piece.tracks[0], size)) return false;
      }
    return are_apart(s_, out_.messages);
  }

  void find_slots() {
    for (const Message& m : out_.messages)
      for (const MessagePart& part : m.parts) {
        const Expr& place = *reduction(part).place;
        const ElementType& type = bound_.model->buffers[static_cast<std::size_t>(place.id)].type;
        const auto size = static_cast<std::int64_t>(type.size_bytes);
        Reach reach = reach_of(part.piece, part.piece.tracks[0]);
        if (type.is_record()) reach = {reach.lowest / size * size, reach.highest / size * size};
        const std::int64_t origin = type.is_record() ? 0 : part.piece.tracks[0].bases[0];
        Slots& slots = slots_.try_emplace(place.id, Slots{origin, reach.lowest, reach.highest}).first->second;
        slots.lowest = std::min(slots.lowest, reach.lowest);
        slots.highest = std::max(slots.highest, reach.highest);
        slots.meetings += part.piece.element_count();
        slots.fields = std::max<std::int64_t>(1, std::ssize(type.fields));
        slots.bytes = type.is_record() ? size : common_bytes(slots.bytes, part.piece, size, slots.origin);
      }
  }

  /// Calls f(slot, byte) for the slots of the place's element at a byte; whether f never gave false.
  template <class F>
  [[gnu::always_inline]] bool each_slot(const Slots& slots, const Expr& place, std::int64_t byte, const F& f) const {
    const std::int64_t first = (byte - slots.lowest) / slots.bytes * slots.fields;
    if (slots.fields == 1 || place.field >= 0) return f(first + std::max(0, place.field), byte);
    for (std::int64_t k = 0; k < slots.fields; ++k)
      if (!f(first + k, byte)) return false;
    return true;
  }

  /// The same for all elements of a part, in order, where a slot's are together.
  template <class F>
  [[gnu::always_inline]] bool each_slot(const Slots& slots, const MessagePart& part, const F& f) const {
    const Expr& place = *reduction(part).place;
    const Piece& p = part.piece;
    const auto size = static_cast<std::int64_t>(place.element_bytes);
    const std::int64_t run = run_bytes(p, size);
    bool goes_on = true;
    walk_outer(p, p.tracks[0], p.counts.size() - (has_runs(p, size) ? 1 : 0), [&](std::int64_t byte) {
      for (std::int64_t at = 0; at < run && goes_on; at += slots.bytes) goes_on = each_slot(slots, place, byte + at, f);
      return goes_on;
    });
    return goes_on;
  }

  /// Whether no slot is met twice, as far as that is found by a bit for each.
  bool are_found_distinct() const {
    std::map<int, std::vector<bool>> are_met;
    for (const auto& [buffer, slots] : slots_) {
      if (!slots.are_dense()) return false;
      are_met[buffer].resize(static_cast<std::size_t>(slots.count()));
    }
    for (const Message& m : out_.messages)
      for (const MessagePart& part : m.parts) {
        const int buffer = reduction(part).place->id;
        std::vector<bool>& is_met = are_met.at(buffer);
        const bool is_distinct = each_slot(slots_.at(buffer), part, [&](std::int64_t slot, std::int64_t) {
          auto bit = is_met[static_cast<std::size_t>(slot)];
          const bool is_new = !bit;
          bit = true;
          return is_new;
        });
        if (!is_distinct) return false;
      }
    return true;
  }

  /// Stamps all places with piece numbers in order of application. The top bit of a stamp: has been assigned.
  void stamp(bool checks) {
    constexpr std::uint32_t assigned_bit = 1u << 31;
    std::map<int, Stamps> stamps;
    for (const auto& [buffer, slots] : slots_) stamps.emplace(buffer, slots);
    std::vector<Stamper> stampers{{}};
    meets_twice_ = false;
    for (std::size_t flow = 0; flow < out_.messages.size(); ++flow)
      for (MessagePart& part : out_.messages[flow].parts) {
        const Reduction& r = reduction(part);
        const auto number = static_cast<std::uint32_t>(stampers.size());
        stampers.push_back({flow, part.reduction});
        Stamps& buffer = stamps.at(r.place->id);
        part.is_injective = true;
        each_slot(slots_.at(r.place->id), part, [&](std::int64_t slot, std::int64_t byte) {
          std::uint32_t& stamp = buffer[slot];
          const std::uint32_t before = stamp & ~assigned_bit;
          if (before != 0) {
            meets_twice_ = true;
            if (before == number) part.is_injective = false;
            const Stamper& other = stampers[before];
            if (other.flow == flow && other.reduction != part.reduction) interleaved_.insert({flow, true});
            if (checks && r.is_assign && (stamp & assigned_bit) != 0)
              assigned_again(part, out_.messages[flow].peer, byte, out_.messages[other.flow].peer, other.reduction);
          }
          stamp = number | (stamp & assigned_bit) | (r.is_assign ? assigned_bit : 0);
          return true;
        });
      }
  }

  [[noreturn]] void assigned_again(const MessagePart& part, std::int64_t sender, std::int64_t byte,
                                   std::int64_t other_sender, int other_reduction) const {
    const auto from = [&](std::int64_t rank, int k, int occurrence) {
      return Assigning{bound_.world_rank_of(rank), environments_.text_at(rank, k, byte, occurrence),
                       static_cast<std::size_t>(k)};
    };
    throw assigned_twice(
        *bound_.model, s_, byte / static_cast<std::int64_t>(reduction(part).place->element_bytes),
        bound_.my_world_rank(), from(other_sender, other_reduction, 0),
        from(sender, part.reduction, other_sender == sender && other_reduction == part.reduction ? 1 : 0));
  }

  /// One element of a message with its order: environment, then reduction.
  struct Item {
    const EnvironmentKey* key;
    int reduction;
    std::vector<std::int64_t> places, positions;  ///< of its elements, in the buffer and in the message
  };

  /// Where reductions of one message meet in a place, they are applied environment by environment, not one after the
  /// other.
  void interleave() {
    if (s_.is_any_order && !s_.is_fresh) return;
    for (const auto& [flow, yes] : interleaved_) {
      Message& m = out_.messages[flow];
      std::vector<Item> items;
      std::map<int, std::vector<EnvironmentKey>> keys;
      for (const Segment& segment : receives_[flow].segments) {
        auto& list = keys[segment.reduction] = environments_.keys(m.peer, segment.reduction);
        std::vector<std::int64_t> places, positions;
        for (const MessagePart& part : m.parts) {
          if (part.reduction != segment.reduction) continue;
          walk(part.piece, part.piece.tracks[0], [&](std::int64_t p) { return places.push_back(p), true; });
          walk(part.piece, part.piece.tracks[1], [&](std::int64_t p) { return positions.push_back(p), true; });
        }
        std::size_t at = 0;
        for (const EnvironmentKey& key : list) {
          const auto from = static_cast<std::ptrdiff_t>(at), to = from + static_cast<std::ptrdiff_t>(key.element_count);
          items.push_back({&key,
                           segment.reduction,
                           {places.begin() + from, places.begin() + to},
                           {positions.begin() + from, positions.begin() + to}});
          at = static_cast<std::size_t>(to);
        }
      }
      std::ranges::stable_sort(items, [](const Item& a, const Item& b) {
        return std::tie(a.key->positions, a.reduction) < std::tie(b.key->positions, b.reduction);
      });
      m.parts.clear();
      for (const Item& item : items) {
        if (m.parts.empty() || m.parts.back().reduction != item.reduction)
          m.parts.push_back({item.reduction,
                             {0, {}, {Track{}, Track{}}},
                             s_.reductions[static_cast<std::size_t>(item.reduction)].is_assign,
                             true});
        Piece& piece = m.parts.back().piece;
        piece.list_length += static_cast<std::int64_t>(item.places.size());
        piece.tracks[0].bases.insert(piece.tracks[0].bases.end(), item.places.begin(), item.places.end());
        piece.tracks[1].bases.insert(piece.tracks[1].bases.end(), item.positions.begin(), item.positions.end());
      }
      std::erase_if(m.parts, [](const MessagePart& part) { return part.piece.list_length == 0; });
      for (MessagePart& part : m.parts) simplify(part.piece);
    }
    if (!interleaved_.empty()) stamp(/*checks=*/false);
  }

  /// `fresh`: the elements that meet their place first are assigned, before the others of the same piece.
  void split_first() {
    std::map<int, std::unordered_map<std::int64_t, bool>> met;
    for (Message& m : out_.messages) {
      std::vector<MessagePart> parts;
      for (const MessagePart& part : m.parts) {
        const Reduction& r = reduction(part);
        MessagePart first{part.reduction, {0, {}, {Track{}, Track{}}}, true, true},
            later{part.reduction, {0, {}, {Track{}, Track{}}}, r.is_assign, part.is_injective};
        Slots elements = slots_.at(r.place->id);
        elements.bytes = static_cast<std::int64_t>(r.place->element_bytes);
        std::vector<std::int64_t> positions;
        walk(part.piece, part.piece.tracks[1], [&](std::int64_t p) { return positions.push_back(p), true; });
        std::size_t k = 0;
        walk(part.piece, part.piece.tracks[0], [&](std::int64_t place) {
          bool is_first = true;
          each_slot(elements, *r.place, place, [&](std::int64_t slot, std::int64_t) {
            is_first = met[r.place->id].emplace(slot, true).second && is_first;
            return true;
          });
          Piece& to = is_first ? first.piece : later.piece;
          ++to.list_length;
          to.tracks[0].bases.push_back(place);
          to.tracks[1].bases.push_back(positions[k++]);
          return true;
        });
        for (MessagePart* split : {&first, &later}) {
          if (split->piece.list_length == 0) continue;
          simplify(split->piece);
          parts.push_back(std::move(*split));
        }
      }
      m.parts = std::move(parts);
    }
  }

  const BoundPlan& bound_;
  const Statement& s_;
  std::vector<Flow> receives_;
  const ReceivedEnvironments& environments_;
  Applications out_;
  std::map<int, Slots> slots_;  ///< by buffer
  bool meets_twice_ = false;
  std::map<std::size_t, bool> interleaved_;  ///< flows in which reductions meet
};

}  // namespace

bool are_apart(const Statement& s, std::span<const Message> messages) {
  std::map<int, std::vector<StridedRegion>> by_buffer;
  for (const Message& m : messages)
    for (const MessagePart& part : m.parts) {
      const Reduction& r = s.reductions[static_cast<std::size_t>(part.reduction)];
      by_buffer[r.place->id].emplace_back(part.piece, part.piece.tracks[0],
                                          static_cast<std::int64_t>(r.place_type.size_bytes));
    }
  return std::ranges::all_of(by_buffer, [](auto& places) { return are_surely_apart(std::move(places.second)); });
}

Applications order_applications(const BoundPlan& bound, const Statement& s, std::vector<Flow> receives,
                                const ReceivedEnvironments& environments) {
  return Ordering(bound, s, std::move(receives), environments).order();
}

}  // namespace kplan
