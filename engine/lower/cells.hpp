#pragma once
// Elements that lie together again and again: some components of each cell, vertex or particle, where a list names
// them for each one, or once for all. A kernel moves all of a cell, and then those of the next one, so that it comes to
// each cache line once and needs no entry for each component.

#include <optional>
#include <span>

#include "engine/analysis/access_pattern.hpp"

namespace kplan {

/// How far each component of a cell lies behind the one that lies first, in bytes; by track.
using Distances = std::vector<Words>;

struct Cells {
  Piece piece;  ///< of the components that lie first
  Distances distances;
};

/// The piece as cells of up to eight components, in an order of elements that may be another; nothing where it is none,
/// or too short. Cost: one look at each entry of its list, mostly at a few. `element_bytes`: by track; of those in
/// buffers, which come first, some must have a cell's components between a cell and the next.
std::optional<Cells> cells_of(const Piece& piece, std::span<const std::int64_t> element_bytes);

}  // namespace kplan
