// Which messages runs may try to place, by the blocks that they lie in.
#include "engine/runtime/placement.hpp"

#include <catch2/catch.hpp>

#include "engine/bind.hpp"
#include "kplan/kplan.hpp"

using namespace kplan;

namespace {

/// What rank 0 may place of what it sends.
std::unique_ptr<Placement> placement_of(const std::string& statement, const PlacingLimits& limits = {}) {
  const auto plan = std::make_shared<const Plan>(Plan::parse(
      R"json({"kplan": 1, "name": "p", "buffers": {
      "a": {"type": "f64", "shape": [4096, 16]}, "b": {"type": "f64", "shape": [4096, 16]},
      "c": {"type": "f32", "shape": [16384]}, "d": {"type": "f32", "shape": [16384, 2]}},
      "statements": [{"communicate": ")json" +
      statement + R"json("}]})json"));
  const std::shared_ptr<const PlanModel> model(plan, &plan->model());
  const Schedule schedule = build_schedule(bind_values(model, {}, /*rank=*/0, /*size=*/2).bound);
  const StatementSchedule& s = schedule.statements[0];
  return Placement::of_sent(model->statements[0], s, s.sends.at(0), limits);
}
bool may_place(const std::string& statement) { return placement_of(statement) != nullptr; }

}  // namespace

TEST_CASE("messages of blocks of 8 bytes and more may be placed, single elements of lists are packed") {
  CHECK(may_place("a[k, 0]@1 <<= b[k, 0]@0 where k in range(4096)"));
  CHECK(!may_place("a[k, 0]@1 <<= b[k, 0]@0 where k in range(1024)"));  // too short
  CHECK(!may_place("c[k]@1 <<= d[k, 0]@0 where k in range(16384)"));
  CHECK(!may_place("a[k, 0]@1 <<= b[k * k % 4093, 0]@0 where k in range(4093)"));
  CHECK(!may_place("a[k, 0:2]@1 <<= b[k * k % 4093, 0:2]@0 where k in range(4093)"));
  CHECK(may_place("a[k, 0:3]@1 <<= b[k * k % 4093, 0:3]@0 where k in range(4093)"));
  CHECK(!may_place("a[k, 0:5]@1 <<= 2 * b[k, 0:5]@0 where k in range(4096)"));
}

TEST_CASE("blocks of 40 bytes and more are likely to go faster where they lie, listed ones from 120 bytes on") {
  CHECK(!placement_of("a[k, 0:4]@1 <<= b[k, 0:4]@0 where k in range(4096)")->has_long_blocks());
  CHECK(placement_of("a[k, 0:5]@1 <<= b[k, 0:5]@0 where k in range(4096)")->has_long_blocks());
  CHECK(!placement_of("a[k, 0:14]@1 <<= b[k * k % 4093, 0:14]@0 where k in range(4093)")->has_long_blocks());
  CHECK(placement_of("a[k, 0:15]@1 <<= b[k * k % 4093, 0:15]@0 where k in range(4093)")->has_long_blocks());
}

TEST_CASE("beside parts that go ahead only blocks of 20 bytes and more are placed, unless any are") {
  const std::string short_blocks = "a[k, 0:2]@1 <<= b[k, 0:2]@0 where k in range(4096)",
                    others = "a[k, 0:3]@1 <<= b[k, 0:3]@0 where k in range(4096)";
  CHECK(placement_of(short_blocks));
  CHECK(!placement_of(short_blocks, PlacingLimits{}.beside_parts()));
  CHECK(placement_of(others, PlacingLimits{}.beside_parts()));
  CHECK(!placement_of(others, PlacingLimits{1, 64}.beside_parts()));
  CHECK(placement_of(short_blocks, PlacingLimits{1, 0}.beside_parts()));
}
