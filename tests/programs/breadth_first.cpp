// How it works: one run of the plan a level. The vertices that the last level has reached, the frontier, send their
// level plus one to all their neighbours, of which each keeps the least. Who sends to whom is new at every run; nobody
// knows but the senders. A second statement of the same run counts what all ranks have sent: the search ends when that
// is nothing.
#include "tests/programs/breadth_first.hpp"

namespace kplan::programs {
namespace {

Plan visit_plan() {
  PlanBuilder plan("breadth-first");
  plan.parameter("n_vertices", Scalar::i64, Scope::private_)
      .parameter("n_edges", Scalar::i64, Scope::private_)
      .parameter_with_default("n_targets", Scalar::i64, 0, Scope::private_, Time::varying)
      .parameter_with_default("depth", Scalar::i32, 0, Scope::uniform, Time::varying)
      .index_buffer("target_owner", Scalar::i32, {"n_edges"}, Scope::private_, Time::varying)
      .index_buffer("target_index", Scalar::i64, {"n_edges"}, Scope::private_, Time::varying)
      .buffer("level", Scalar::i32, {"n_vertices"})
      .buffer("sent", Scalar::i64, {});
  plan.communicate("visit",
                   "level[v]@owner << min << depth@rank "
                   "where k in {0 ... n_targets-1}, v = target_index[k], owner = target_owner[k]");
  plan.communicate("count", "sent@r << sum << n_targets@s where s in world, r in world").fresh();
  return plan.build();
}

}  // namespace

std::vector<std::int32_t> breadth_first_levels(Engine& engine, const Blocks& blocks, const Graph& mine,
                                               std::int64_t root) {
  std::vector<std::int32_t> level(mine.first.size() - 1, unreached), owner(mine.neighbours.size());
  std::vector<std::int64_t> index(mine.neighbours.size());
  std::int64_t sent = 0;
  Executable visit =
      engine.compile(visit_plan(), {{"n_vertices", mine.vertex_count()}, {"n_edges", mine.neighbours.size()}});
  visit.bind("target_owner", owner);
  visit.bind("target_index", index);
  visit.bind("level", level);
  visit.bind("sent", sent);

  if (blocks.owner(root) == engine.rank()) level[static_cast<std::size_t>(root - blocks.first(engine.rank()))] = 0;
  for (std::int32_t depth = 1;; ++depth) {
    std::size_t count = 0;
    for (std::size_t v = 0; v < level.size(); ++v) {
      if (level[v] != depth - 1) continue;
      for (std::size_t e = mine.first[v]; e < mine.first[v + 1]; ++e, ++count) {
        owner[count] = blocks.owner(mine.neighbours[e]);
        index[count] = mine.neighbours[e] - blocks.first(owner[count]);
      }
    }
    visit.set("depth", depth);
    visit.set("n_targets", count);
    visit.run();
    if (sent == 0) return level;
  }
}

}  // namespace kplan::programs
