#pragma once
// Breadth-first search over a graph distributed by blocks of vertices, level by level.

#include <kplan/kplan.hpp>
#include <limits>

#include "tests/programs/blocks.hpp"
#include "tests/programs/graphs.hpp"

namespace kplan::programs {

constexpr std::int32_t unreached = std::numeric_limits<std::int32_t>::max();

/// Collective: how many edges lie between `root` and each of this rank's vertices, or `unreached`. `mine` are this
/// rank's vertices; it knows nothing of the others'.
std::vector<std::int32_t> breadth_first_levels(Engine& engine, const Blocks& blocks, const Graph& mine,
                                               std::int64_t root);

}  // namespace kplan::programs
