// Finite elements: nodes that several ranks share are summed over them, in place. Every rank has its own numbers for
// the nodes, ascending with gaps as they come from a mesh; what is sent is what was there before any sum.
#include <random>

#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

/// Numbers on `rank` of the nodes that it shares with `peer`.
std::vector<std::int32_t> shared_nodes(int rank, int peer, std::int64_t count) {
  std::mt19937 random(static_cast<unsigned>(rank * 104729 + peer));
  std::vector<std::int32_t> out;
  for (std::int32_t node = 0; static_cast<std::int64_t>(out.size()) < count;) {
    // Runs of a few neighbours along an edge, then a jump.
    for (std::int32_t left = 1 + static_cast<std::int32_t>(random() % 6);
         left > 0 && static_cast<std::int64_t>(out.size()) < count; --left)
      out.push_back(node++);
    node += 1 + static_cast<std::int32_t>(random() % 16);
  }
  return out;
}

Case make(const Team& team, std::int64_t count, int components) {
  const std::int64_t nodes = 8 * count;
  Exchange e{.team = team};
  e.combine = Combine::sum;
  e.reads_what_it_writes = true;
  e.arrays = {{Scalar::f64, {nodes, components}}};
  std::vector<std::int64_t> lists(static_cast<std::size_t>(team.size * count), 0);
  for (int peer = 0; peer < team.size; ++peer) {
    if (peer == team.rank) continue;
    const IndexList mine{0, shared_nodes(team.rank, peer, count), components, 0, components};
    const IndexList theirs{0, shared_nodes(peer, team.rank, count), components, 0, components};
    e.sends.push_back({peer, 0, {mine}, {theirs}});
    e.receives.push_back({peer, 0, {mine}, {theirs}});
    std::copy(mine.indices.begin(), mine.indices.end(), lists.begin() + peer * count);
  }
  PlanBuilder builder("finite-elements");
  builder.parameter("nodes", Scalar::i64).parameter("count", Scalar::i64).parameter("components", Scalar::i64);
  builder.buffer("force", Scalar::f64, {"nodes", "components"});
  builder.index_buffer("shared", Scalar::i64, {"size", "count"}, Scope::private_, Time::fixed);
  builder.communicate("assemble",
                      "force[shared[s, k], :]@r << sum << force[shared[r, k], :]@s "
                      "where s in world, r in world, s != r, k in range(count)");
  const Values values{{"nodes", nodes}, {"count", count}, {"components", components}, {"shared", lists}};
  return case_of(std::move(e), {builder.build(), values, {"force"}}, components);
}

}  // namespace

void add_finite_elements(std::vector<Workload>& to) {
  to.push_back({"finite elements, 2000 nodes of 3", {}, [](const Team& team) { return make(team, 2000, 3); }});
  to.push_back({"finite elements, 20000 nodes of 1", {}, [](const Team& team) { return make(team, 20000, 1); }});
}

}  // namespace kplan::bench
