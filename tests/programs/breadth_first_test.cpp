// Breadth-first search on distributed vertices, against a serial one.
#include "tests/programs/breadth_first.hpp"

#include <catch2/catch.hpp>

#include "tests/programs/on_ranks.hpp"

using namespace kplan;
using namespace kplan::programs;

namespace {

std::vector<std::int32_t> serial_levels(const Graph& graph, std::int64_t root) {
  std::vector<std::int32_t> level(graph.first.size() - 1, unreached);
  std::vector<std::size_t> queue{static_cast<std::size_t>(root)};
  level[queue[0]] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const std::size_t v = queue[next];
    for (std::size_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
      const auto w = static_cast<std::size_t>(graph.neighbours[e]);
      if (level[w] != unreached) continue;
      level[w] = level[v] + 1;
      queue.push_back(w);
    }
  }
  return level;
}

void check_levels(const Graph& graph, std::int64_t root) {
  const std::vector<std::int32_t> expected = serial_levels(graph, root);
  on_ranks([&](Engine& engine) {
    const Blocks blocks{graph.vertex_count(), engine.size()};
    const std::int64_t begin = blocks.first(engine.rank()), end = blocks.first(engine.rank() + 1);
    claim(
        breadth_first_levels(engine, blocks, graph.part(begin, end), root) ==
            std::vector<std::int32_t>(expected.begin() + begin, expected.begin() + end),
        "the levels of vertices " + std::to_string(begin) + " ... " + std::to_string(end - 1) + " are the serial ones");
  });
}

}  // namespace

TEST_CASE("breadth-first search finds the serial levels of a random graph, and leaves what cannot be reached") {
  const Graph graph = random_graph(500, 800);
  check_levels(graph, 250);
  const std::vector<std::int32_t> levels = serial_levels(graph, 250);
  CHECK(std::ranges::count(levels, unreached) > 0);
  CHECK(std::ranges::count(levels, unreached) < 450);
}

TEST_CASE("breadth-first search finds the serial levels of a graph in which few vertices have many neighbours") {
  check_levels(r_mat(9, 3000), 0);
}

TEST_CASE("breadth-first search follows a path from end to end, one vertex a level") {
  check_levels(path(97), 0);
  check_levels(path(97), 60);
}

TEST_CASE("breadth-first search ends where there are fewer vertices than ranks") {
  check_levels(path(3), 1);
  check_levels(random_graph(2, 0), 0);
}
