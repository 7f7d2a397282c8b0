// Random expressions over blocks of environments: columns have the values, and the faults, of one environment at a
// time.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "engine/analysis/columns.hpp"
#include "engine/bind.hpp"
#include "kplan/engine.hpp"
#include "tests/engine/random_expression.hpp"

using namespace kplan;
using kplan::test::add_data;
using kplan::test::RandomExpression;
using kplan::test::values_of;

namespace {

constexpr std::size_t first_binding = 2;  // of the clauses below

Plan plan_of(const std::vector<std::string>& bindings, const std::string& place) {
  PlanBuilder builder("columns");
  add_data(builder);
  std::string text = fmt::format("x{}@0 <<= y[0]@rank where i in range(4), j in range(4)", place);
  for (std::size_t k = 0; k < bindings.size(); ++k) text += fmt::format(", v{} = {}", k, bindings[k]);
  builder.communicate("s", text);
  return builder.build();
}

Block random_block(const Statement& s, std::size_t count, std::mt19937_64& random) {
  Block out(s.variables.size());
  out.count = count;
  for (std::size_t v = 0; v < first_binding; ++v)
    for (std::size_t row = 0; row < count; ++row)
      out.words[v].push_back(random() % 50 == 0 ? (random() % 2 == 0 ? INT64_MIN + 1 : INT64_MAX)
                                                : static_cast<std::int64_t>(random() % 14) - 2);
  return out;
}

struct Counts {
  int by_columns = 0, one_by_one = 0, faults = 0;
};

/// `expected(row)` gives value and count, or throws BlockFault.
template <class F>
void compare(ColumnEvaluator& columns, ColumnProgram& program, const Block& block, const RankState& state,
             const F& expected, Counts& seen) {
  std::vector<std::int64_t> values(block.count), counts(block.count, 1);
  const bool is_run = program.form() == ColumnProgram::Form::runs;
  std::optional<std::string> fault;
  try {
    for (std::size_t row = 0; row < block.count; ++row) (void)expected(row);
  } catch (const BlockFault& f) {
    fault = f.fault.code;
  }
  const bool by_columns = program.run(state, block, values.data(), is_run ? counts.data() : nullptr);
  if (fault) {
    CHECK_FALSE(by_columns);
    ++seen.faults;
    CHECK_THROWS_AS(columns.run(program, block, values.data(), is_run ? counts.data() : nullptr), BlockFault);
    return;
  }
  ++(by_columns ? seen.by_columns : seen.one_by_one);
  columns.run(program, block, values.data(), is_run ? counts.data() : nullptr);
  for (std::size_t row = 0; row < block.count; ++row) {
    const std::pair<std::int64_t, std::int64_t> e = expected(row);
    REQUIRE(values[row] == e.first);
    REQUIRE(counts[row] == e.second);
  }
}

}  // namespace

TEST_CASE("expressions and references over columns are what they are in each environment") {
  std::mt19937_64 random(20261122);
  RandomExpression expressions(random);
  Counts seen;
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> bindings{expressions.integer(3), expressions.boolean(2), expressions.integer(1)};
    const std::string place = expressions.reference();
    CAPTURE(bindings, place);
    const auto plan = std::make_shared<const Plan>(plan_of(bindings, place));
    const BoundValues values =
        bind_values(std::shared_ptr<const PlanModel>(plan, &plan->model()), values_of(random), 1, 3);
    const BoundPlan& bound = values.bound;
    const Statement& s = bound.model->statements[0];
    ColumnEvaluator columns(s, bound.state);
    for (const std::size_t count : {1, 1, 2, 37}) {
      const Block block = random_block(s, count, random);
      for (std::size_t k = 0; k < bindings.size(); ++k) {
        const Expr& e = *s.clauses[first_binding + k].expression;
        ColumnProgram program = columns.program(e, ColumnProgram::Form::integers);
        compare(
            columns, program, block, bound.state,
            [&](std::size_t row) { return std::pair(columns.evaluate_at(e, block, row).as_integer(), 1); }, seen);
      }
      const Expr& e = *s.reductions[0].place;
      ColumnProgram program = columns.program(e, ColumnProgram::Form::runs);
      compare(
          columns, program, block, bound.state,
          [&](std::size_t row) {
            try {
              const std::vector<SubscriptRange> r = subscript_ranges(e, columns.context_at(block, row));
              return std::pair(r[0].first * 9 + r[1].first, r[0].count * r[1].count);
            } catch (const EvaluationFault& f) {
              throw BlockFault{f, row};
            }
          },
          seen);
    }
  }
  // Not all of one kind.
  CHECK(seen.by_columns > 1000);
  CHECK(seen.one_by_one > 30);
  CHECK(seen.faults > 100);
}
