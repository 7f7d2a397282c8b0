#include "engine/lower/cells.hpp"

#include <algorithm>

namespace kplan {
namespace {

constexpr std::int64_t most_components = 8, fewest_cells = 16;

Words distances_of(const Track& track, std::int64_t components) {
  Words out;
  for (std::int64_t c = 0; c < components; ++c) out.push_back(track.base(c) - track.base(0));
  return out;
}

/// Whether components lie in cells of so many, one after the other in the list: at the same distances in each.
bool repeats_after(const Track& track, std::int64_t list_length, std::int64_t components) {
  if (!track.is_listed()) return true;
  const Words& b = track.bases;
  const auto p = static_cast<std::size_t>(components), n = static_cast<std::size_t>(list_length);
  for (std::size_t cell = p; cell < n; cell += p)
    for (std::size_t c = 1; c < p; ++c)
      if (b[cell + c] - b[cell] != b[c] - b[0]) return false;
  return true;
}

/// Counts distances from the component that lies first.
void count_from_first(Cells& cells) {
  for (std::size_t t = 0; t < cells.distances.size(); ++t) {
    const std::int64_t first = std::ranges::min(cells.distances[t]);
    for (std::int64_t& d : cells.distances[t]) d -= first;
    for (std::int64_t& base : cells.piece.tracks[t].bases) base += first;
  }
}

/// The list's entries are cells of so many components each.
Cells listed_cells(const Piece& piece, std::int64_t components) {
  Cells out{{piece.list_length / components, {}, {}}, {}};
  for (const Track& track : piece.tracks) {
    Track first;
    for (std::int64_t k = 0; k < piece.list_length; k += components) first.bases.push_back(track.base(k));
    out.piece.tracks.push_back(std::move(first));
    out.distances.push_back(distances_of(track, components));
  }
  simplify(out.piece);
  count_from_first(out);
  return out;
}

/// The list's entries are components, of all cells in its nest.
Cells nested_cells(const Piece& piece) {
  Cells out{{1, piece.counts, {}}, {}};
  for (const Track& track : piece.tracks) {
    out.piece.tracks.push_back({{track.base(0)}, track.strides});
    out.distances.push_back(distances_of(track, piece.list_length));
  }
  count_from_first(out);
  return out;
}

/// Whether the components of a cell lie between it and the next one.
bool is_between_cells(const Words& distances, std::int64_t next, std::int64_t element_bytes) {
  return std::ranges::max(distances) + element_bytes <= std::abs(next);
}

}  // namespace

std::optional<Cells> cells_of(const Piece& piece, std::span<const std::int64_t> element_bytes) {
  if (piece.list_length < 2 || piece.element_count() < 2 * fewest_cells) return std::nullopt;
  if (!piece.counts.empty()) {
    if (piece.list_length > most_components || piece.block_elements() < fewest_cells) return std::nullopt;
    Cells out = nested_cells(piece);
    for (std::size_t t = 0; t < element_bytes.size(); ++t)
      if (is_between_cells(out.distances[t], piece.tracks[t].strides.back(), element_bytes[t])) return out;
    return std::nullopt;
  }
  if (std::ranges::none_of(piece.tracks, &Track::is_listed)) return std::nullopt;
  for (std::int64_t components = 2; components <= most_components; ++components) {
    const auto repeats = [&](const Track& track) { return repeats_after(track, piece.list_length, components); };
    if (piece.list_length % components == 0 && piece.list_length >= components * fewest_cells &&
        std::ranges::all_of(piece.tracks, repeats))
      return listed_cells(piece, components);
  }
  return std::nullopt;
}

}  // namespace kplan
