#pragma once
// Directed graphs to try the programs on, the same on every rank and every call.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kplan::programs {

/// The neighbours of each vertex: those of v are neighbours[first[v]] ... neighbours[first[v + 1] - 1], perhaps v
/// itself or the same one twice.
struct Graph {
  std::vector<std::size_t> first{0};
  std::vector<std::int64_t> neighbours;

  std::int64_t vertex_count() const { return static_cast<std::int64_t>(first.size()) - 1; }
  /// Vertices begin ... end - 1 alone, numbered from 0, with the neighbours' numbers as they are.
  Graph part(std::int64_t begin, std::int64_t end) const;
};

/// 0 - 1 - 2 - ..., both ways: as many levels as vertices.
Graph path(std::int64_t vertices);
/// Edges between vertices drawn evenly; some vertices are not to be reached.
Graph random_graph(std::int64_t vertices, std::int64_t edges);
/// Edges drawn by halving the adjacency matrix again and again, into quarters of unequal weight: few vertices have many
/// neighbours (Chakrabarti, Zhan, Faloutsos: R-MAT, 2004; weights of Graph500). 2^scale vertices.
Graph r_mat(int scale, std::int64_t edges);

}  // namespace kplan::programs
