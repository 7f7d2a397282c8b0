#pragma once
// The order of a nest's loops, where it is free.

#include "engine/analysis/access_pattern.hpp"

namespace kplan {

/// Where two steps of a short dimension lie on the same cache lines, that dimension is walked inside the others, so
/// that these lines are loaded once: the two faces of a field, where a row's end and the next one's beginning are side
/// by side; a ghost that is written beside an edge that is read. Looks at the first `tracks` tracks of the piece, which
/// lie in one buffer. If the last of them `is_written`, its steps follow each other row by row, since cores join stores
/// to one line that come one after the other; else plane by plane, since then the message's do. Returns whether it has
/// changed the order.
bool walk_shared_lines_together(Piece& piece, std::size_t tracks, std::int64_t element_bytes, bool is_written);

}  // namespace kplan
