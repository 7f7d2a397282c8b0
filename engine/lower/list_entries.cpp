#include "engine/lower/list_entries.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace kplan {

Unfilled<jit::ListEntry> entries_of(const Track& track, std::int64_t list_length, std::int64_t lowest,
                                    std::int64_t unit) {
  const auto count = static_cast<std::size_t>(list_length);
  const Words made = track.is_listed() ? Words() : track.listed_bases(list_length);
  const std::int64_t* const bases = track.is_listed() ? track.bases.data() : made.data();
  Unfilled<jit::ListEntry> out(count);
  const auto fill = [&](const auto& quotient) {
    for (std::size_t k = 0; k < count; ++k) out[k] = static_cast<jit::ListEntry>(quotient(bases[k] - lowest));
  };
  const auto bits = static_cast<std::uint64_t>(unit);
  if (std::has_single_bit(bits)) fill([shift = std::countr_zero(bits)](std::int64_t v) { return v >> shift; });
  else fill([unit](std::int64_t v) { return v / unit; });
  return out;
}

std::vector<std::int64_t> list_ends(const Piece& piece, const std::vector<ListedTrack>& tracks) {
  constexpr Wide most_entries = std::numeric_limits<jit::ListEntry>::max();
  const auto fits = [&](const ListedTrack& t) {
    if (t.most <= most_entries) return true;
    const Reach reach = reach_of(piece, *t.track);
    return static_cast<Wide>(reach.highest) - reach.lowest <= most_entries * static_cast<Wide>(t.unit);
  };
  if (piece.list_length == 1 || std::ranges::all_of(tracks, fits)) return {piece.list_length};
  std::vector<std::int64_t> out;
  std::vector<Reach> reaches;
  for (std::int64_t o = 0; o < piece.list_length; ++o) {
    bool is_too_far = false;
    for (std::size_t t = 0; t < tracks.size() && !reaches.empty(); ++t) {
      const std::int64_t base = tracks[t].track->base(o);
      reaches[t] = {std::min(reaches[t].lowest, base), std::max(reaches[t].highest, base)};
      is_too_far = is_too_far || static_cast<Wide>(reaches[t].highest) - reaches[t].lowest >
                                     most_entries * static_cast<Wide>(tracks[t].unit);
    }
    if (is_too_far) out.push_back(o);
    if (is_too_far || reaches.empty()) {
      reaches.clear();
      for (const ListedTrack& t : tracks) reaches.push_back({t.track->base(o), t.track->base(o)});
    }
  }
  out.push_back(piece.list_length);
  return out;
}

}  // namespace kplan
