// What the reference interpreter refuses, with its place.
#include <catch2/catch.hpp>

#include "tests/plans/simulated_ranks.hpp"

namespace kplan::test {

TEST_CASE("a double assignment names both environments", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"A": {"type": "f64", "shape": [4]}})",
                               "A[i / 2]@1 <<= 1.0@j where i in {0, 2, 3}, j in {i - 1}, j >= 0, i >= 2"),
                       3);
  const std::string message = ranks.error();
  CHECK(message.find("element 1 of `A` on rank 1 is assigned twice: from rank 1 when i = 2, j = 1 and from rank 2 when "
                     "i = 3, j = 2; if the last") != std::string::npos);
}

TEST_CASE("a sender or receiver outside the group is an error that names the environment", "[plans][reference]") {
  const std::string buffers = R"("buffers": {"x": {"type": "i64", "shape": []}})";
  SimulatedRanks to_nobody(plan_of(buffers, "x@i + 1 <<= x@i where i in world"), 3);
  CHECK(to_nobody.error().find("the receiver 3 is not among the group's ranks 0 to 2 when i = 2, rank 2; a filter in "
                               "the where-list can leave it out [KP-P057]") != std::string::npos);
  SimulatedRanks from_nobody(plan_of(buffers, "x@i <<= x@i - 1 where i in world"), 3);
  CHECK(from_nobody.error().find("the sender -1 is not among the group's ranks 0 to 2 when i = 0, rank 0;") !=
        std::string::npos);
  SimulatedRanks filtered(plan_of(buffers, "x@i + 1 <<= x@i where i in world, i + 1 < size"), 3);
  CHECK(filtered.error().empty());
}

TEST_CASE("an error leaves every buffer of its statement as it was where it is met before writing",
          "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"x": {"type": "i64", "shape": [2]}})", "x[i]@i <<= 7@i where i in world"),
                       3);
  CHECK(ranks.error().find("index 2 is outside the 2 elements of `x` when i = 2, rank 2 [KP-P052]") !=
        std::string::npos);
  for (int r = 0; r < 3; ++r) CHECK(ranks.get<std::int64_t>("x", r) == std::vector<std::int64_t>{0, 0});
}

TEST_CASE("an empty dimension empties a selection, however large the dimensions before it are", "[plans][reference]") {
  const Plan plan =
      plan_of(R"("buffers": {"x": {"type": "u8", "shape": [1099511627776, 0]}, "y": {"type": "u8", "shape": [0]}})",
              "y@0 <<= x@0");
  SimulatedRanks ranks(plan, 1);
  CHECK(ranks.error().empty());
}

TEST_CASE("the reference interpreter refuses what would take too long or too much", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"x": {"type": "i64", "shape": [4]}})",
                               "x@i << sum << x@i where i in world, k in {0 ... 9}"),
                       2);
  const auto error_with = [&](const ReferenceLimits& limits) {
    try {
      ranks.run(limits);
    } catch (const PlanError& e) {
      return e.code();
    }
    return std::string();
  };
  CHECK(error_with({.step_count = 10}) == "KP-P051");
  CHECK(error_with({.element_count = 10}) == "KP-P056");
  CHECK(error_with({}).empty());
  SimulatedRanks overlapping(
      plan_of(R"("buffers": {"a": {"type": "u8", "shape": [32768, 65536], "strides": [1, 1]}})", "a@0 <<= a@0"), 1);
  CHECK(overlapping.error().find(
            "the slice has more than 2^30 elements, which cannot be listed one by one on rank 0 [KP-P055]") !=
        std::string::npos);
}

TEST_CASE("memory of another size than the layout's is refused", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"x": {"type": "i64", "shape": [4]}})", "x[0]@0 <<= x[1]@0"), 1);
  ranks.bytes("x", 0).resize(8);
  CHECK_THROWS_AS(ranks.run(), InternalError);
  CHECK(ranks.error().find("[KP-I002]") != std::string::npos);
}

TEST_CASE("a buffer with an extent of 0 has no elements, however large the others are", "[plans][reference]") {
  for (const std::string shape :
       {"[9223372036854775807, 0]", "[0, 9223372036854775807]", "[4294967296, 4294967296, 0]"}) {
    CAPTURE(shape);
    const Plan plan = plan_of(R"("buffers": {"x": {"type": "i64", "shape": )" + shape + "}}", "x@0 <<= x@0");
    const Layout layout = layouts_of(plan.model(), 0, 1, {}).at(0);
    CHECK(layout.element_count == 0);
    CHECK(layout.extent == 0);
  }
}

TEST_CASE("contents that are not given are asked for, in values and in sets", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("buffers": {"x": {"type": "i64", "shape": [4]}, "g": {"type": "i64", "shape": [4], "time": "varying"}})",
      "x[0]@0 <<= x[g[1]]@0 where k in g");
  RankState state;
  state.layouts = layouts_of(plan.model(), 0, 1, {});
  state.contents = {nullptr, nullptr};
  const Statement& s = plan.model().statements[0];
  const auto code_of = [](const auto& f) {
    try {
      f();
    } catch (const EvaluationFault& fault) {
      return fault.code;
    }
    return std::string();
  };
  CHECK(code_of([&] { for_each_environment(s, state, [](const auto&) { return true; }); }) == "KP-B010");
  CHECK(code_of([&] { select(*s.reductions[0].value, {.state = &state}); }) == "KP-B010");
}

}  // namespace kplan::test
