// Index expressions over parameters as steps.
#include "engine/analysis/index_program.hpp"

#include <catch2/catch.hpp>
#include <optional>

#include "engine/bind.hpp"
#include "kplan/kplan.hpp"

using namespace kplan;

namespace {

/// A plan whose first place has this index.
Plan plan_with_index(const std::string& text) {
  return Plan::parse(R"json({"kplan": 1, "name": "p",
    "parameters": {"n": {"type": "i64", "default": 4}, "j": {"type": "i64", "time": "varying", "default": 0},
                   "k": {"type": "i64", "time": "varying", "default": 0}},
    "buffers": {"a": {"type": "i64", "shape": ["n"]}, "b": {"type": "i64", "shape": ["n"]}},
    "statements": [{"communicate": "a[)json" +
                     text + R"json(]@1 <<= b[0]@0"}]})json");
}

ExprPtr index_of(const Plan& plan) { return plan.model().statements[0].reductions[0].place->subscripts[0].lo; }

}  // namespace

TEST_CASE("index expressions as steps have the values that they have as trees") {
  constexpr std::int64_t size = 3;
  for (const std::string text :
       {"k", "7", "size", "k + j", "k - 2 * j", "(k + j) % size", "k / size * n + 3", "k % j", "k / j",
        "n * (k - j) * (k + j)", "(k - j) % (j - n)", "k - (j - (n - (k - (j - n))))"}) {
    INFO(text);
    const Plan plan = plan_with_index(text);
    const std::shared_ptr<const PlanModel> model{std::shared_ptr<const void>(), &plan.model()};
    RankState state = bind_values(model, {}, 0, size).bound.state;
    const ExprPtr e = index_of(plan);
    const IndexProgram program(*e, size);
    REQUIRE(program.is_complete());
    for (const std::int64_t k : {std::int64_t{0}, std::int64_t{5}, std::int64_t{-7}, INT64_MIN, INT64_MAX})
      for (const std::int64_t j : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{3}, INT64_MIN}) {
        state.parameters[static_cast<std::size_t>(model->find_parameter("k"))] = ScalarValue::integer(k);
        state.parameters[static_cast<std::size_t>(model->find_parameter("j"))] = ScalarValue::integer(j);
        std::optional<std::int64_t> expected;
        try {
          expected = evaluate_index(*e, {.state = &state});
        } catch (const EvaluationFault&) {
        }
        std::int64_t value = 0;
        CHECK(program.evaluate(state.parameters, value) == expected.has_value());
        if (expected) CHECK(value == *expected);
      }
  }
  for (const std::string text : {"rank + k", "min(k, j)", "k < j ? k : j", "k+(k+(k+(k+(k+(k+(k+(k+(k+(k+j)))))))))"}) {
    INFO(text);
    const Plan plan = plan_with_index(text);
    CHECK_FALSE(IndexProgram(*index_of(plan), size).is_complete());
  }
}
