#include "tests/programs/graphs.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace kplan::programs {
namespace {

using Edge = std::pair<std::int64_t, std::int64_t>;

Graph graph_of(std::int64_t vertices, std::vector<Edge> edges) {
  std::ranges::sort(edges);
  Graph out;
  auto edge = edges.begin();
  for (std::int64_t v = 0; v < vertices; ++v) {
    for (; edge != edges.end() && edge->first == v; ++edge) out.neighbours.push_back(edge->second);
    out.first.push_back(out.neighbours.size());
  }
  return out;
}

}  // namespace

Graph Graph::part(std::int64_t begin, std::int64_t end) const {
  Graph out;
  for (auto v = static_cast<std::size_t>(begin); v < static_cast<std::size_t>(end); ++v) {
    for (std::size_t e = first[v]; e < first[v + 1]; ++e) out.neighbours.push_back(neighbours[e]);
    out.first.push_back(out.neighbours.size());
  }
  return out;
}

Graph path(std::int64_t vertices) {
  std::vector<Edge> edges;
  for (std::int64_t v = 1; v < vertices; ++v) {
    edges.emplace_back(v - 1, v);
    edges.emplace_back(v, v - 1);
  }
  return graph_of(vertices, edges);
}

Graph random_graph(std::int64_t vertices, std::int64_t edges) {
  std::mt19937 random(3);
  std::uniform_int_distribution<std::int64_t> vertex(0, vertices - 1);
  std::vector<Edge> out;
  for (std::int64_t e = 0; e < edges; ++e) {
    const std::int64_t from = vertex(random);
    out.emplace_back(from, vertex(random));
  }
  return graph_of(vertices, out);
}

Graph r_mat(int scale, std::int64_t edges) {
  std::mt19937 random(4);
  std::discrete_distribution<int> quarter({0.57, 0.19, 0.19, 0.05});
  std::vector<Edge> out;
  for (std::int64_t e = 0; e < edges; ++e) {
    Edge edge{0, 0};
    for (int bit = 0; bit < scale; ++bit) {
      const int q = quarter(random);
      edge = {2 * edge.first + q / 2, 2 * edge.second + q % 2};
    }
    out.push_back(edge);
    out.emplace_back(edge.second, edge.first);
  }
  return graph_of(std::int64_t{1} << scale, out);
}

}  // namespace kplan::programs
