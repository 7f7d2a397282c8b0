// Where a rank sends to itself: each element straight from its source to its place.
#include "engine/lower/joined_ends.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "engine/bind.hpp"
#include "kplan/plan.hpp"

using namespace kplan;

namespace {

/// The source of each place, which is met once.
std::map<std::int64_t, std::int64_t> places(const JoinedEnds& ends) {
  std::map<std::int64_t, std::int64_t> out;
  for (const auto& [from, to] : ends) {
    std::vector<std::int64_t> sources;
    walk(from.piece, from.piece.tracks[0], [&](std::int64_t at) {
      sources.push_back(at);
      return true;
    });
    std::size_t next = 0;
    walk(to.piece, to.piece.tracks[0], [&](std::int64_t at) {
      CHECK(out.emplace(at, sources.at(next++)).second);
      return true;
    });
    CHECK(next == sources.size());
  }
  return out;
}

}  // namespace

TEST_CASE("ghosts of a field that is periodic on one rank come in rows, and lines that are met twice soon again") {
  constexpr std::int64_t n = 32, extent = n + 2;
  const Plan plan = Plan::parse(
      R"json({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "default": 32}}, )json"
      R"json("buffers": {"u": {"type": "f64", "shape": ["n + 2", "n + 2", "n + 2"]}}, "statements": [{"communicate": )json"
      R"json("u[tx:tx+cx, ty:ty+cy, tz:tz+cz]@rank <<= u[fx:fx+cx, fy:fy+cy, fz:fz+cz]@rank where )json"
      R"json(dx, dy, dz in {-1 ... 1}, dx != 0 || dy != 0 || dz != 0, )json"
      R"json(cx = dx == 0 ? n : 1, cy = dy == 0 ? n : 1, cz = dz == 0 ? n : 1, )json"
      R"json(fx = dx > 0 ? n : 1, fy = dy > 0 ? n : 1, fz = dz > 0 ? n : 1, tx = dx > 0 ? 0 : dx == 0 ? 1 : n + 1, )json"
      R"json(ty = dy > 0 ? 0 : dy == 0 ? 1 : n + 1, tz = dz > 0 ? 0 : dz == 0 ? 1 : n + 1"}]})json");
  const std::shared_ptr<const Plan> holder = std::make_shared<const Plan>(plan);
  const Schedule schedule =
      build_schedule(bind_values(std::shared_ptr<const PlanModel>(holder, &holder->model()), {}, 0, 1).bound);
  const StatementSchedule& s = schedule.statements[0];
  const auto ends = join_ends(holder->model().statements[0], s.local_send[0].parts, s.local_receive[0].parts);
  REQUIRE(ends);

  std::map<std::int64_t, std::int64_t> wanted;
  const auto wrapped = [](std::int64_t at) { return at == 0 ? n : at == n + 1 ? 1 : at; };
  for (std::int64_t x = 0; x < extent; ++x)
    for (std::int64_t y = 0; y < extent; ++y)
      for (std::int64_t z = 0; z < extent; ++z) {
        const std::int64_t place = (x * extent + y) * extent + z,
                           source = (wrapped(x) * extent + wrapped(y)) * extent + wrapped(z);
        if (place != source) wanted[8 * place] = 8 * source;
      }
  CHECK(places(*ends) == wanted);

  std::int64_t longest_list = 0;
  bool has_both_columns = false;
  for (const auto& [from, to] : *ends) {
    longest_list = std::max(longest_list, from.piece.list_length);
    // The faces across the columns: both of them in every row.
    has_both_columns = has_both_columns ||
                       (from.piece.counts == std::vector<std::int64_t>{n, n, 2} && to.piece.tracks[0].strides[2] > 0);
  }
  CHECK(longest_list < n * n);
  CHECK(has_both_columns);
}

TEST_CASE("the sum that is made anew at places that are met twice goes straight to them, assigned before it is added") {
  const std::vector<std::int32_t> list{0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 0};  // three elements of four nodes, in a ring
  const Plan plan = Plan::parse(
      R"json({"kplan": 1, "name": "p", "buffers": {"g": {"type": "i32", "shape": [12], "time": "fixed"}, )json"
      R"json("u": {"type": "f64", "shape": [12]}, "U": {"type": "f64", "shape": [9]}}, "statements": [)json"
      R"json({"communicate": "U[g[k]]@rank << sum << u[k]@rank where k in range(12)", "fresh": true}]})json");
  const std::shared_ptr<const Plan> holder = std::make_shared<const Plan>(plan);
  const Values values{{"g", list}};
  const auto bound = bind_values(std::shared_ptr<const PlanModel>(holder, &holder->model()), values, 0, 1);
  const Schedule schedule = build_schedule(bound.bound);
  const StatementSchedule& s = schedule.statements[0];
  const auto ends = join_ends(holder->model().statements[0], s.local_send[0].parts, s.local_receive[0].parts);
  REQUIRE(ends);

  std::vector<double> sums(9, -1.0), wanted(9);
  for (std::size_t k = 0; k < list.size(); ++k) wanted[static_cast<std::size_t>(list[k])] += static_cast<double>(k);
  for (const auto& [from, to] : *ends) {
    std::vector<std::int64_t> sources;
    walk(from.piece, from.piece.tracks[0], [&](std::int64_t at) { return sources.push_back(at), true; });
    std::size_t next = 0;
    walk(to.piece, to.piece.tracks[0], [&](std::int64_t at) {
      double& sum = sums[static_cast<std::size_t>(at / 8)];
      sum = (to.is_assign ? 0 : sum) + static_cast<double>(sources.at(next++) / 8);
      return true;
    });
    CHECK(next == sources.size());
  }
  CHECK(sums == wanted);
}
