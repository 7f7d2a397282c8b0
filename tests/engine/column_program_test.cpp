// Random expressions over blocks of environments: columns have the values, and the faults, of one environment at a
// time.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "engine/analysis/columns.hpp"
#include "engine/bind.hpp"
#include "kplan/engine.hpp"
#include "tests/engine/dice.hpp"

using namespace kplan;

namespace {

constexpr std::size_t first_binding = 2;  // of the clauses below

class RandomExpression : test::Dice {
 public:
  explicit RandomExpression(std::mt19937_64& random) : Dice(random) {}

  std::string integer(int depth) {
    switch (depth == 0 ? between(0, 4) : between(0, 12)) {
      case 0: return "i";
      case 1: return "j";
      case 2: return "n";
      case 3: return chance(50) ? "rank" : "size";
      case 4: return std::to_string(between(0, 9));
      case 5: return fmt::format("({} ? {} : {})", boolean(depth - 1), integer(depth - 1), integer(depth - 1));
      case 6: return fmt::format("i64({}[{}])", one_of<std::string>({"bytes", "words"}), index(depth - 1));
      case 7: return fmt::format("i64(pairs[{}, {} % 3])", index(depth - 1), index(depth - 1));
      case 8: return fmt::format("i64({}({}))", one_of<std::string>({"i8", "u16", "i32"}), integer(depth - 1));
      case 9:
        return fmt::format("{}({}, {})", one_of<std::string>({"min", "max"}), integer(depth - 1), integer(depth - 1));
      case 10: return fmt::format("({} {} (n + {}))", integer(depth - 1), chance(50) ? "/" : "%", integer(depth - 1));
      default:
        return fmt::format("({} {} {})", integer(depth - 1), one_of<std::string>({"+", "-", "*"}), integer(depth - 1));
    }
  }
  std::string index(int depth) { return chance(85) ? fmt::format("({}) % 8", integer(depth)) : integer(depth); }
  std::string boolean(int depth) {
    if (depth > 0 && chance(30))
      return fmt::format("({} {} {})", boolean(depth - 1), chance(50) ? "&&" : "||", boolean(depth - 1));
    if (chance(15)) return fmt::format("!({} < {})", integer(0), integer(0));
    return fmt::format("({} {} {})", integer(std::max(0, depth - 1)),
                       one_of<std::string>({"<", "<=", "==", "!=", ">", ">="}), integer(std::max(0, depth - 1)));
  }
  /// Of an array of 8 x 9 elements.
  std::string reference() {
    const std::string row = chance(80) ? index(1) : "0";
    switch (between(0, 3)) {
      case 0: return fmt::format("[{}, {}]", row, index(1));
      case 1: return fmt::format("[{}, :]", row);
      case 2: return fmt::format("[{}, {}:]", row, index(1));
      default: return fmt::format("[{}, {}:9 - {}]", row, index(0), index(0));
    }
  }
};

Plan plan_of(const std::vector<std::string>& bindings, const std::string& place) {
  PlanBuilder builder("columns");
  builder.parameter("n", Scalar::i64).buffer("x", Scalar::f64, {"8", "9"}).buffer("y", Scalar::f64, {"9"});
  builder.index_buffer("bytes", Scalar::i8, {"8"}, Scope::private_, Time::fixed);
  builder.index_buffer("words", Scalar::u32, {"8"}, Scope::private_, Time::fixed);
  builder.index_buffer("pairs", Scalar::i64, {"8", "3"}, Scope::private_, Time::fixed);
  std::string text = fmt::format("x{}@0 <<= y[0]@rank where i in range(4), j in range(4)", place);
  for (std::size_t k = 0; k < bindings.size(); ++k) text += fmt::format(", v{} = {}", k, bindings[k]);
  builder.communicate("s", text);
  return builder.build();
}

Values values_of(std::mt19937_64& random) {
  std::vector<std::int8_t> bytes(8);
  std::vector<std::uint32_t> words(8);
  std::vector<std::int64_t> pairs(24);
  for (auto& v : bytes) v = static_cast<std::int8_t>(random());
  for (auto& v : words) v = static_cast<std::uint32_t>(random() % 20);
  for (auto& v : pairs) v = static_cast<std::int64_t>(random() % 1000) - 500;
  pairs[5] = INT64_MAX;
  return {{"n", static_cast<std::int64_t>(random() % 12)}, {"bytes", bytes}, {"words", words}, {"pairs", pairs}};
}

Block random_block(const Statement& s, std::size_t count, std::mt19937_64& random) {
  Block out(s.variables.size());
  out.count = count;
  for (std::size_t v = 0; v < first_binding; ++v)
    for (std::size_t row = 0; row < count; ++row)
      out.words[v].push_back(random() % 50 == 0 ? INT64_MIN + 1 : static_cast<std::int64_t>(random() % 14) - 2);
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
