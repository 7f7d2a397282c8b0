#pragma once
// Positions as entries of the lists that kernels walk: short numbers of elements from the lowest on. A list that
// reaches further than they can say is cut.

#include <vector>

#include "engine/schedule/schedule.hpp"
#include "jit/kernel_spec.hpp"

namespace kplan {

/// The entries of the track's bases, which are multiples of `unit` from `lowest` on.
Unfilled<jit::ListEntry> entries_of(const Track& track, std::int64_t list_length, std::int64_t lowest,
                                    std::int64_t unit);

/// A track that may be listed, and the unit of its list's entries.
struct ListedTrack {
  const Track* track;
  std::size_t unit;
  std::int64_t most;  ///< units from the lowest position to the highest, at most
};

/// Where the list of a piece must be cut so that the entries of each section can say how far it reaches: the ends of
/// the sections.
std::vector<std::int64_t> list_ends(const Piece& piece, const std::vector<ListedTrack>& tracks);

/// Calls f for the sections of a part of a message whose lists have these ends.
template <class F>
void each_section(const MessagePart& part, const std::vector<std::int64_t>& ends, const F& f) {
  if (ends.size() == 1) return f(part);
  std::int64_t first = 0;
  for (const std::int64_t end : ends) {
    MessagePart section{part.reduction, {end - first, part.piece.counts, {}}, part.is_assign, part.is_injective};
    for (const Track& track : part.piece.tracks) section.piece.tracks.push_back(part_of(track, first, end));
    f(section);
    first = end;
  }
}

}  // namespace kplan
