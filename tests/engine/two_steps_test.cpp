// All-reduces whose ranks combine a share each and exchange the shares: what is divided, where it is cut, and that the
// memory is the reference's, bit by bit.
#include "engine/schedule/two_steps.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>

#include "engine/bind.hpp"
#include "random_plan.hpp"
#include "tests/engine/on_ranks.hpp"
#include "tests/variable.hpp"

using namespace kplan;
using namespace kplan::test;

namespace {

RandomStatement all_reduce(RandomReduction r, std::vector<std::string> clauses, bool is_fresh = true) {
  RandomStatement out;
  out.reductions = {std::move(r)};
  out.clauses = std::move(clauses);
  out.is_fresh = is_fresh;
  return out;
}

RandomPlan plan_of(int ranks, std::vector<RandomStatement> statements) {
  RandomPlan out;
  out.ranks = ranks;
  out.data_seed = 11;
  out.buffers = {{"A", "f64", {5, 13}, {}, "", false, false}, {"B", "f64", {5, 13}, {}, "", false, false},
                 {"C", "f32", {65}, {}, "", false, false},    {"D", "f64", {130}, {}, "", false, false},
                 {"E", "f64", {65}, {}, "", false, false},    {"N", "i32", {65}, {}, "", false, false}};
  out.statements = std::move(statements);
  return out;
}

/// The schedules of all ranks as they would run, from a plan in which every rank knows everything.
std::vector<Schedule> schedules_of(const char* statement, int ranks, bool is_fresh = true,
                                   TwoStepLimits limits = {.least_bytes = 1}) {
  const auto plan = std::make_shared<const Plan>(Plan::parse(
      std::string(
          R"json({"kplan": 1, "name": "p", "buffers": {"a": {"type": "f64", "shape": [6, 40]}, "b": {"type": "f32", "shape": [6, 40]}}, "statements": [{"communicate": ")json") +
      statement + (is_fresh ? "\", \"fresh\": true}]}" : "\"}]}")));
  const std::shared_ptr<const PlanModel> model(plan, &plan->model());
  std::vector<Schedule> out;
  std::vector<CollectiveCandidates> candidates;
  for (int rank = 0; rank < ranks; ++rank) {
    out.push_back(build_schedule(bind_values(model, {}, rank, ranks).bound));
    CollectiveCandidates c = collective_candidates(out.back().statements[0]);
    c.wants_two_steps = can_go_in_two_steps(model->statements[0], out.back().statements[0], limits);
    candidates.push_back(c);
  }
  for (Schedule& s : out) {
    s.statements[0].collective = agreed_form(candidates);
    s.has_common_phases = true;
    if (has_two_steps(s)) s = divide(model, s).schedule;
  }
  return out;
}

}  // namespace

TEST_CASE("part of a piece has its elements, in their order") {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int k = 0; k < 2000; ++k) {
    Piece piece;
    piece.list_length = 1 + below(4);
    for (std::int64_t d = below(4); d > 0; --d) piece.counts.push_back(1 + below(5));
    for (int t = 0; t < 2; ++t) {
      Track track;
      for (std::size_t d = 0; d < piece.counts.size(); ++d) track.strides.push_back(below(90) - 30);
      const bool is_listed = piece.list_length > 1 && below(2) == 0;
      for (std::int64_t o = 0; o < (is_listed ? piece.list_length : 1); ++o) track.bases.push_back(below(1000));
      if (!is_listed && piece.list_length > 1) track.step = below(100) - 50;
      piece.tracks.push_back(std::move(track));
    }
    const std::int64_t count = piece.element_count(), first = below(static_cast<int>(count) + 1),
                       end = first + below(static_cast<int>(count - first) + 1);
    const std::vector<Piece> parts = part_of(piece, first, end);
    for (std::size_t t = 0; t < 2; ++t) {
      std::vector<std::int64_t> all, found;
      walk(piece, piece.tracks[t], [&](std::int64_t p) { return all.push_back(p), true; });
      for (const Piece& part : parts)
        walk(part, part.tracks[t], [&](std::int64_t p) { return found.push_back(p), true; });
      REQUIRE(found == std::vector<std::int64_t>(all.begin() + first, all.begin() + end));
    }
  }
}

TEST_CASE("an all-reduce is cut into shares, which go to all in a second statement") {
  const std::vector<Schedule> ranks = schedules_of("a@j << sum << b@i where i in world, j in world", 4);
  for (const Schedule& s : ranks) {
    REQUIRE(s.statements.size() == 2);
    CHECK(s.phases == std::vector<std::vector<int>>{{0}, {1}});
    for (const Message& m : s.statements[0].sends) CHECK(m.bytes == 240 / 4 * 4);
    for (const Message& m : s.statements[1].sends) CHECK(m.bytes == 240 / 4 * 8);
    CHECK(s.statements[0].receives.size() == 3);
    CHECK(s.statements[1].receives.size() == 3);
  }
  CHECK(ranks[2].statements[0].collective.kind == transport::CollectiveKind::alltoall);
  CHECK(ranks[2].statements[1].collective.kind == transport::CollectiveKind::allgather);
  // The second message of rank 2 to the others is the third quarter of `a`.
  CHECK(ranks[2].statements[1].sends[0].parts[0].piece.tracks[0].bases == Words{120 * 8});
}

TEST_CASE("what is no all-reduce, or could differ in two steps, is not divided") {
  const auto steps = [](const char* statement, int ranks, bool is_fresh) {
    return schedules_of(statement, ranks, is_fresh)[0].statements.size();
  };
  CHECK(steps("a@j << sum << b@i where i in world, j in world", 3, true) == 2);
  CHECK(steps("a[k, 2 * l]@j << max << b[k, l]@i where i in world, j in world, k in range(6), l in range(20)", 3,
              true) == 2);
  CHECK(steps("a@j << sum << b@i where i in world, j in world", 2, true) == 1);   // nothing is gained
  CHECK(steps("a@j << sum << b@i where i in world, j in world", 3, false) == 1);  // what `a` holds comes first
  CHECK(steps("a@0 << sum << b@i where i in world", 3, true) == 1);
  CHECK(steps("a[0, :]@j << sum << b[i32(i == j), :]@i where i in world, j in world", 3, true) == 1);
  CHECK(steps("a[0, :]@j << sum << b[2 * i - i, :]@i where i in world, j in world", 3, true) == 2);
  CHECK(steps("a[i, :]@j <<= b[i, :]@i where i in world, j in world", 3, false) == 1);
  CHECK(steps("a[(k + i) % 6, :]@j << sum << b[k, :]@i where i in world, j in world, k in range(6)", 3, true) == 1);
  CHECK(steps("a[0, 0]@j << sum << b[k, l]@i where i in world, j in world, k in range(6), l in range(40)", 3, true) ==
        1);
  // One place is met by several elements of a message, in loops that do not reach equally far.
  CHECK(steps("a[0, l]@j << sum << b[k, l]@i where i in world, j in world, k in range(2), l in range(40), l >= 4 * k",
              3, true) == 1);
}

TEST_CASE("two ranks that share no memory divide an all-reduce of 16 times as many bytes") {
  const auto steps = [](int ranks, TwoStepLimits limits) {
    return schedules_of("a@j << sum << b@i where i in world, j in world", ranks, true, limits)[0].statements.size();
  };
  constexpr std::size_t bytes = 240 * 4;
  CHECK(steps(3, {.least_bytes = bytes, .serves_two_ranks = true}) == 2);
  CHECK(steps(2, {.least_bytes = bytes, .serves_two_ranks = true}) == 1);
  CHECK(steps(2, {.least_bytes = bytes / 16, .serves_two_ranks = true}) == 2);
  CHECK(steps(2, {.least_bytes = bytes / 16, .serves_two_ranks = false}) == 1);
  CHECK(schedules_of("a[0, :]@j << sum << b[j, :]@i where i in world, j in world", 2, true,
                     {.least_bytes = 1, .serves_two_ranks = true})[0]
            .statements.size() == 1);
}

TEST_CASE("a plan with an all-reduce in two steps that is compiled again is divided again") {
  const tests::Variable all("KPLAN_TWO_STEP_BYTES", "1");
  tests::on_ranks(3, [](Engine& engine) {
    const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "total", "buffers": {
      "a": {"type": "f64", "shape": [50]}, "b": {"type": "f64", "shape": [50]}},
      "statements": [{"communicate": "a@j << sum << b@i where i in world, j in world", "fresh": true}]})json");
    std::vector<Executable> alike;
    std::vector<std::vector<double>> a(3, std::vector<double>(50));
    std::vector<double> b(50, engine.rank() + 1);
    for (std::size_t k = 0; k < 3; ++k) {
      alike.push_back(engine.compile(plan));
      alike.back().bind("a", a[k]);
      alike.back().bind("b", b);
    }
    for (int run = 0; run < 4; ++run)
      for (Executable& x : alike) x.run();
    for (const auto& each : a) tests::claim(each == std::vector<double>(50, 1 + 2 + 3), "it is the sum");
  });
}

TEST_CASE("records whose fields are moved as one stay whole beside an all-reduce in two steps") {
  const tests::Variable all("KPLAN_TWO_STEP_BYTES", "1");
  tests::on_ranks(3, [](Engine& engine) {
    struct Point {
      double x, y;
      bool operator==(const Point&) const = default;
    };
    Executable e = engine.compile(Plan::parse(R"json({"kplan": 1, "name": "p", "types": {"point": {"fields": [
        {"name": "x", "type": "f64"}, {"name": "y", "type": "f64"}]}},
      "buffers": {"p": {"type": "point", "shape": [5]}, "q": {"type": "point", "shape": [5]},
                  "a": {"type": "f64", "shape": [50]}, "b": {"type": "f64", "shape": [50]}},
      "statements": [
        {"communicate": "p[k].x@(rank + 1) % size <<= q[k].x@rank, p[k].y@(rank + 1) % size <<= q[k].y@rank where k in range(5)"},
        {"communicate": "a@j << sum << b@i where i in world, j in world", "fresh": true}]})json"));
    std::vector<Point> p(5), q(5, {engine.rank() + 0.25, engine.rank() + 0.5});
    std::vector<double> a(50), b(50, engine.rank() + 1);
    e.bind("p", p);
    e.bind("q", q);
    e.bind("a", a);
    e.bind("b", b);
    e.run();
    const int left = (engine.rank() + 2) % 3;
    tests::claim(p == std::vector<Point>(5, {left + 0.25, left + 0.5}), "both fields have come");
    tests::claim(a == std::vector<double>(50, 1 + 2 + 3), "it is the sum");
  });
}

TEST_CASE("all-reduces in two steps leave in memory what the reference does") {
  const tests::Variable all("KPLAN_TWO_STEP_BYTES", "1");
  const auto runs = [](const RandomPlan& plan) {
    const Outcome outcome = compare_with_reference(plan);
    INFO(plan.to_json() << "\n" << outcome.what);
    CHECK(outcome.kind == Outcome::Kind::identical);
  };
  const std::vector<std::string> both{"i in world", "j in world"}, each{"i in world", "j in world", "k in range(65)"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), both.begin(), both.end());
    return more;
  };
  for (const int ranks : {3, 4, 5})
    for (const char* op : {"sum", "prod", "min", "axpy", "mean"}) {
      runs(plan_of(ranks, {all_reduce({"A", "j", op, "B", "i"}, both)}));
      runs(plan_of(ranks, {all_reduce({"D[2 * k + 1]", "j", op, "C[64 - k] * alpha + i", "i"}, each)}));
      runs(plan_of(ranks,
                   {all_reduce({"A[l, m]", "j", op, "B[l, m]", "i"}, with({"m in range(13)", "l in range(5)"}))}));
      runs(plan_of(ranks, {all_reduce({"A[1:4, 2:13]", "j", op, "B[0:3, 1:12]", "i"}, both)}));
      runs(plan_of(ranks, {all_reduce({"N[k]", "j", op, "N[k] * 2", "i"}, each)}));  // reads what it writes
      runs(plan_of(ranks, {all_reduce({"D[k * k % 131]", "j", op, "E[k]", "i"}, with({"k in range(65)", "k < 60"}))}));
    }
  SECTION("places that one message meets twice") {
    for (const char* op : {"sum", "mean"})
      runs(plan_of(3, {all_reduce({"E[l]", "j", op, "D[13 * k + l]", "i"},
                                  with({"k in range(2)", "l in range(60)", "l >= 4 * k"}))}));
  }
  SECTION("other statements keep their places") {
    const RandomStatement ring = all_reduce({"C[k]", "(i + 1) % size", "assign", "f32(E[k])", "i"},
                                            {"i in world", "k in range(65)"}, false),
                          of_a = all_reduce({"A", "j", "sum", "B", "i"}, both),
                          of_d = all_reduce({"D[k]", "j", "max", "E[k]", "i"}, each),
                          on_a = all_reduce({"E[k]", "j", "sum", "A[k % 5, k % 13]", "i"}, each),
                          varying = all_reduce({"C[k]", "i", "assign", "f32(E[k])", "(i + upper) % size"},
                                               {"i in world", "k in range(upper)"}, false);
    runs(plan_of(3, {ring, of_a, of_d}));
    runs(plan_of(3, {of_a, ring, of_d, on_a}));
    runs(plan_of(4, {of_a, of_d, varying, on_a, ring}));
    runs(plan_of(4, {varying, of_a, ring}));
  }
}
