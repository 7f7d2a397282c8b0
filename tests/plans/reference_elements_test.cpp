// What the reference interpreter does to the elements: operators, records, slices, strides.
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/plans/simulated_ranks.hpp"

namespace kplan::test {

TEST_CASE("each built-in operator combines as its name says", "[plans][reference]") {
  const std::vector<std::int32_t> v{6, 3, 12};
  const auto run = [&](const std::string& op, std::int32_t before) {
    SimulatedRanks ranks(plan_of(R"("buffers": {"t": {"type": "i32", "shape": []}, "v": {"type": "i32", "shape": []}})",
                                 "t@1 << " + op + " << v@s where s in world"),
                         3);
    ranks.set<std::int32_t>("t", 1, {before});
    for (int r = 0; r < 3; ++r) ranks.set<std::int32_t>("v", r, {v[static_cast<std::size_t>(r)]});
    ranks.run();
    return ranks.get<std::int32_t>("t", 1)[0];
  };
  CHECK(run("sum", 100) == 121);
  CHECK(run("prod", 2) == 432);
  CHECK(run("min", 5) == 3);
  CHECK(run("max", 5) == 12);
  CHECK(run("band", 15) == 0);
  CHECK(run("bor", 16) == 31);
  CHECK(run("bxor", 0) == (6 ^ 3 ^ 12));
  CHECK(run("land", 1) == 1);
  CHECK(run("land", 0) == 0);
  CHECK(run("lor", 0) == 1);
}

namespace {
struct Located {
  double value;
  std::int32_t index;
  bool operator==(const Located&) const = default;
};
const std::string located =
    R"("types": {"located": {"fields": [{"name": "value", "type": "f64"}, {"name": "index", "type": "i32"}]}}, "buffers": {"t": {"type": "located", "shape": []}, "v": {"type": "located", "shape": []}})";
}  // namespace

TEST_CASE("minloc and maxloc keep the better value with its index, and of equal values the smaller index",
          "[plans][reference]") {
  for (const bool is_min : {true, false}) {
    SimulatedRanks ranks(
        plan_of(located, std::string("t@0 << ") + (is_min ? "minloc" : "maxloc") + " << v@s where s in world"), 4);
    const double sign = is_min ? 1 : -1;
    ranks.set<Located>("t", 0, {{sign * 9, 50}});
    const std::vector<Located> values{{sign * 4, 8}, {sign * 2, 7}, {sign * 2, 3}, {sign * 5, 1}};
    for (int r = 0; r < 4; ++r) ranks.set<Located>("v", r, {values[static_cast<std::size_t>(r)]});
    ranks.run();
    CHECK(ranks.get<Located>("t", 0)[0].value == sign * 2);
    CHECK(ranks.get<Located>("t", 0)[0].index == 3);
  }
}

TEST_CASE("a plan's own operator on scalars is applied once per transfer", "[plans][reference]") {
  SimulatedRanks ranks(
      plan_of(
          R"("operators": {"axpy": {"expression": "left + 2 * right"}}, "buffers": {"t": {"type": "f32", "shape": []}, "v": {"type": "f32", "shape": []}})",
          "t@0 << axpy << v@s where s in world"),
      3);
  float expected = 0.25f;
  ranks.set<float>("t", 0, {expected});
  for (int r = 0; r < 3; ++r) {
    const float v = 0.1f * static_cast<float>(r + 1);
    ranks.set<float>("v", r, {v});
    expected = expected + 2.0f * v;
  }
  ranks.run();
  CHECK(ranks.get<float>("t", 0)[0] == expected);
}

TEST_CASE("a plan's own operators on records choose whole records or combine fields, reading the old fields",
          "[plans][reference]") {
  const auto with = [](const std::string& expression) {
    SimulatedRanks ranks(plan_of(R"("operators": {"mine": {"expression": )" + expression + "}}, " + located,
                                 "t@0 << mine << v@s where s in world"),
                         2);
    ranks.set<Located>("t", 0, {{1.0, 10}});
    ranks.set<Located>("v", 0, {{3.0, 30}});
    ranks.set<Located>("v", 1, {{2.0, 20}});
    ranks.run();
    const Located out = ranks.get<Located>("t", 0)[0];
    return std::pair(out.value, out.index);
  };
  CHECK(with(R"j("left.value < right.value ? right : left")j") == std::pair(3.0, 30));
  CHECK(with(R"j({"value": "left.value + right.value", "index": "max(left.index, right.index)"})j") ==
        std::pair(6.0, 30));
  CHECK(with(R"j({"index": "left.index + 1"})j") == std::pair(1.0, 12));  // a field that is not named stays
  CHECK(with(R"j({"value": "f64(left.index)", "index": "i32(left.value)"})j") == std::pair(1.0, 10));  // swapped twice
}

TEST_CASE("records travel whole, and fields travel alone", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(located, "t@1 <<= v@0, t.index@0 <<= v.index@1, t.value@0 << sum << f32(v.index)@1"), 2);
  ranks.set<Located>("t", 0, {{0.5, -1}});
  ranks.set<Located>("v", 0, {{1.5, 11}});
  ranks.set<Located>("v", 1, {{2.5, 22}});
  ranks.run();
  CHECK(ranks.get<Located>("t", 1)[0].value == 1.5);
  CHECK(ranks.get<Located>("t", 1)[0].index == 11);
  CHECK(ranks.get<Located>("t", 0)[0].value == 22.5);
  CHECK(ranks.get<Located>("t", 0)[0].index == 22);
}

TEST_CASE("slices with steps are taken in row-major order on both sides", "[plans][reference]") {
  const Plan plan =
      plan_of(R"("buffers": {"M": {"type": "i32", "shape": [3, 5]}, "N": {"type": "i32", "shape": [4, 6]}})",
              "M[0:3:2, 1::2]@0 <<= N[i, 2:6]@0 where i in {3}");
  SimulatedRanks ranks(plan, 1);
  std::vector<std::int32_t> n(24);
  std::iota(n.begin(), n.end(), 0);
  ranks.set("N", 0, n);
  ranks.run();
  std::vector<std::int32_t> expected(15);
  expected[1] = 20, expected[3] = 21, expected[11] = 22, expected[13] = 23;
  CHECK(ranks.get<std::int32_t>("M", 0) == expected);
}

TEST_CASE("strides place elements in memory and leave the gaps alone", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("buffers": {"M": {"type": "i32", "shape": [2, 3], "strides": [1, 4]}, "v": {"type": "i32", "shape": [6]}})",
      "M@0 <<= v@0");
  SimulatedRanks ranks(plan, 1);
  REQUIRE(ranks.get<std::int32_t>("M", 0).size() == 10);  // 1 + 1 * 1 + 2 * 4
  ranks.set<std::int32_t>("M", 0, std::vector<std::int32_t>(10, -1));
  ranks.set<std::int32_t>("v", 0, {1, 2, 3, 4, 5, 6});
  ranks.run();
  CHECK(ranks.get<std::int32_t>("M", 0) == std::vector<std::int32_t>{1, 4, -1, -1, 2, 5, -1, -1, 3, 6});
}

TEST_CASE("arithmetic on slices is element by element, and a single element meets each", "[plans][reference]") {
  const Plan plan = plan_of(R"("buffers": {"a": {"type": "f64", "shape": [4]}, "b": {"type": "f64", "shape": [4]}})",
                            "a[0:3]@0 <<= b[1:4] * 2 + b[0] - a[0:3]@0");
  SimulatedRanks ranks(plan, 1);
  ranks.set<double>("a", 0, {1, 2, 3, 4});
  ranks.set<double>("b", 0, {10, 20, 30, 40});
  ranks.run();
  CHECK(ranks.get<double>("a", 0) == std::vector<double>{49, 68, 87, 4});
}

TEST_CASE("buffers without dimensions hold one element, which its bare name means", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("parameters": {"send_rank": "i64", "recv_rank": "i64"}, "buffers": {"b": {"type": "f64", "shape": []}, "a": {"type": "f64", "shape": []}})",
      "b@recv_rank <<= a@send_rank");
  SimulatedRanks ranks(plan, 3, [](const std::string& name, int) { return name == "send_rank" ? 2 : 1; });
  for (int r = 0; r < 3; ++r) ranks.set<double>("a", r, {r + 0.5});
  ranks.run();
  CHECK(ranks.get<double>("b", 0)[0] == 0);
  CHECK(ranks.get<double>("b", 1)[0] == 2.5);
  CHECK(ranks.get<double>("b", 2)[0] == 0);
}

}  // namespace kplan::test
