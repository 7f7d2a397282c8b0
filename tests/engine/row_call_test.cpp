// Random where-lists as machine code: rows are those of the enumeration, and where that finds something wrong the code
// leaves.
#include <catch2/catch.hpp>

#include "engine/analysis/enumeration.hpp"
#include "engine/analysis/pattern_finder.hpp"
#include "engine/bind.hpp"
#include "engine/runtime/ready_rows.hpp"
#include "tests/engine/random_expression.hpp"

using namespace kplan;
using namespace kplan::test;

namespace {

using Rows = std::vector<std::vector<std::int64_t>>;  // by column
using Form = ColumnProgram::Form;

class RandomWhere : Dice {
 public:
  explicit RandomWhere(std::mt19937_64& random) : Dice(random), expressions_(random) {}

  std::string statement() {
    const bool is_pull = chance(30), decides_here = chance(70);
    const std::string here = decides_here ? "rank" : fmt::format("({}) % size", expressions_.integer(1)),
                      there = fmt::format(fmt::runtime(chance(90) ? "({}) % size" : "{}"), expressions_.integer(2));
    return fmt::format("x{}@{} <<= y[{}]@{} where {}", expressions_.reference(), is_pull ? here : there,
                       expressions_.index(1), is_pull ? there : here, where());
  }

 private:
  std::string where() {
    std::string out = "i in range(4), j in " + set();
    for (int k = between(0, 3); k > 0; --k) {
      const int made = between(0, 2);
      if (made == 0) out += fmt::format(", {}", expressions_.boolean(2));
      else if (made == 1) out += fmt::format(", v{} = {}", k, expressions_.integer(2));
      else out += fmt::format(", w{} in {}", k, set());
    }
    return out;
  }
  std::string set() {
    switch (between(0, 5)) {
      case 0: return "world";
      case 1: return fmt::format("{{{} ... {}}}", between(-2, 1), between(-3, 4));
      case 2: return fmt::format("range({}, n, {})", between(0, 3), between(1, 3));
      case 3: return fmt::format("words[{}:{}]", between(0, 3), between(2, 8));
      case 4: return fmt::format("pairs[i, 0:{}]", chance(50) ? "2" : "words[i] % 4");
      default: return "bytes[:]";
    }
  }

  RandomExpression expressions_;
};

/// With the code at hand.
ReadyRows compiled(const RowCall& call, const RankState& state) { return {call, state, jit::Wait::until_compiled}; }

/// What the code finds; nothing where it leaves.
std::optional<Rows> found(ReadyRows& rows, const RankState& state, std::int64_t given,
                          const std::vector<const std::byte*>& tables, std::size_t columns) {
  for (std::int64_t room = 0;; room = 2 * room + 1) {
    Rows out(columns, std::vector<std::int64_t>(static_cast<std::size_t>(room) + 1, -77));
    std::vector<std::int64_t*> to;
    for (auto& column : out) to.push_back(column.data());
    std::int64_t count = 0;
    const jit::RowsOutcome outcome = rows.run(state, given, tables, {to, {&room, 1}, {&count, 1}});
    if (outcome == jit::rows_left) return std::nullopt;
    for (const auto& column : out) REQUIRE(column.back() == -77);
    if (outcome == jit::rows_out_of_room) continue;
    REQUIRE(count <= room);
    for (auto& column : out) column.resize(static_cast<std::size_t>(count));
    return out;
  }
}

/// First bytes, and counts.
void run_end(ColumnEvaluator& columns, ColumnProgram& program, const Block& block, std::vector<std::int64_t>& firsts,
             std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> values(block.count), lengths(block.count, 1);
  columns.run(program, block, values.data(), program.form() == Form::runs ? lengths.data() : nullptr);
  for (std::size_t row = 0; row < block.count; ++row) {
    firsts.push_back(values[row] * static_cast<std::int64_t>(program.expression().element_bytes));
    counts.push_back(lengths[row]);
  }
}

struct Counts {
  int rows = 0, left = 0, faults = 0, not_lowered = 0, told = 0;
};

void check_told(const BoundPlan& bound, const Statement& s, const RowWish& near, const Expr& far, const Rows& rows,
                ColumnEvaluator& columns, Counts& seen) {
  ColumnProgram program(far, Form::runs, bound.state);
  const auto call = lower_told_rows(
      bound, s, {{{&program, static_cast<std::int64_t>(far.element_bytes), 0}}, near.has_counts, near.told, 0});
  if (!call) return;
  std::vector<std::vector<std::int32_t>> words;
  Block block(s.variables.size());
  block.count = rows[0].size();
  for (std::size_t w = 0; w < near.told.size() + (near.has_counts ? 1 : 0); ++w) {
    auto& column = words.emplace_back();
    for (const std::int64_t word : rows[2 + w]) {
      column.push_back(static_cast<std::int32_t>(word));
      if (column.back() != word) return;  // such rows go in wide tables
    }
    if (w < near.told.size())
      block.words[static_cast<std::size_t>(near.told[w])].assign(rows[2 + w].begin(), rows[2 + w].end());
  }
  std::vector<const std::byte*> tables;
  for (const auto& column : words) tables.push_back(reinterpret_cast<const std::byte*>(column.data()));
  Rows expected(2);
  bool is_as_told = true;
  try {
    run_end(columns, program, block, expected[0], expected[1]);
    for (std::size_t row = 0; row < block.count; ++row)
      is_as_told = is_as_told && expected[1][row] == (near.has_counts ? rows.back()[row] : 1);
  } catch (const BlockFault&) {
    is_as_told = false;
  }
  ReadyRows ready = compiled(*call, bound.state);
  const auto got = found(ready, bound.state, static_cast<std::int64_t>(block.count), tables, 2);
  if (got) {
    REQUIRE(is_as_told);
    REQUIRE(*got == expected);
    ++seen.told;
  }
}

}  // namespace

TEST_CASE("compiled where-lists have the rows of the enumeration") {
  if (!jit::Compiler::instance().is_available()) return;
  std::mt19937_64 random(20261123);
  RandomWhere wheres(random);
  Counts seen;
  for (int round = 0; round < 400; ++round) {
    const std::string text = wheres.statement();
    CAPTURE(text);
    PlanBuilder builder("rows");
    add_data(builder);
    builder.communicate("s", text);
    const auto plan = std::make_shared<const Plan>(builder.build());
    const BoundValues values =
        bind_values(std::shared_ptr<const PlanModel>(plan, &plan->model()), values_of(random), 1, 3);
    const BoundPlan& bound = values.bound;
    const Statement& s = bound.model->statements[0];
    const Reduction& r = s.reductions[0];
    const Expr &near = s.is_pull ? *r.place : *r.value, &far = s.is_pull ? *r.value : *r.place;

    Enumeration enumeration(bound, s);
    ColumnProgram program = enumeration.columns().program(near, Form::runs);
    const auto unit_of = [](const Expr& e) { return static_cast<std::int64_t>(e.element_bytes); };
    const RowWish wish{{{&program, unit_of(near), 0}}, s.is_pull, told_variables(s, r), 0};
    Rows expected(2 + wish.told.size() + (wish.has_counts ? 1 : 0));
    bool is_wrong = false;
    try {
      enumeration.each_decided([&](std::size_t, const Block& block, const std::int64_t* peers) {
        std::vector<std::int64_t> counts;
        run_end(enumeration.columns(), program, block, expected[1], counts);
        expected[0].insert(expected[0].end(), peers, peers + block.count);
        for (std::size_t w = 0; w < wish.told.size(); ++w) {
          const auto& words = block.words[static_cast<std::size_t>(wish.told[w])];
          expected[2 + w].insert(expected[2 + w].end(), words.begin(),
                                 words.begin() + static_cast<std::ptrdiff_t>(block.count));
        }
        if (wish.has_counts) expected.back().insert(expected.back().end(), counts.begin(), counts.end());
      });
    } catch (const Error&) {
      is_wrong = true;
    }
    const auto call = lower_decided_rows(bound, s, {&wish, 1});
    if (!call) {
      ++seen.not_lowered;
      continue;
    }
    ReadyRows ready = compiled(*call, bound.state);
    const auto got = found(ready, bound.state, 0, {}, expected.size());
    if (got) {
      REQUIRE_FALSE(is_wrong);
      REQUIRE(*got == expected);
      seen.rows += static_cast<int>(expected[0].size());
      check_told(bound, s, wish, far, *got, enumeration.columns(), seen);
    } else {
      ++(is_wrong ? seen.faults : seen.left);
    }
  }
  // Not all of one kind; code leaves without need where `?:` leaves a fault out.
  CHECK(seen.rows > 2000);
  CHECK(seen.faults > 40);
  CHECK(seen.left < 40);
  CHECK(seen.not_lowered < 40);
  CHECK(seen.told > 40);
}
