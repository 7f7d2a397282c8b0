// Rows that stand for all turns of a where-list's innermost loop.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "engine/runtime/row_choice.hpp"
#include "random_plan.hpp"
#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using namespace kplan::test;

namespace {

enum class Loop { none, beside, listed };

/// How the turns of the innermost loop go.
struct Case {
  std::string place, value;
  Loop loop;
};

const std::vector<std::string> usual{"s = rank", "d in world", "k in range(lengths[d])"};

/// Pushed by `s` to `d`, or pulled by `s` from `d`.
RandomPlan plan_of(const std::vector<std::string>& clauses, const std::vector<Case>& cases, const std::string& op,
                   const std::string& type, bool is_pull = false) {
  const std::string varying = R"("time": "varying")";
  RandomPlan plan;
  plan.ranks = 3;
  plan.data_seed = 5;
  plan.buffers = {{"lengths", "i64", {3}, {}, varying, false, false},
                  {"list", "i64", {3, 12}, {}, varying, false, false},
                  {"A", type, {68}, {}, "", false, false},
                  {"M", type, {12, 3}, {}, "", false, false},
                  {"T", type, {3, 2, 12}, {}, "", false, false},
                  {"apart", type, {40}, {2}, "", false, false},
                  {"small", type, {8}, {}, "", false, false},
                  {"pairs", "pair", {40}, {}, "", false, false},
                  {"B", type, {24}, {}, "", false, false},
                  {"N", type, {12, 3}, {}, "", false, false},
                  {"square", type, {12, 12}, {}, "", false, false},
                  {"wide", type, {12, 36}, {}, "", false, false},
                  {"from", "pair", {24}, {}, "", false, false},
                  {"A2", type, {60}, {}, "", false, false}};
  RandomStatement s;
  s.clauses = clauses;
  s.is_pull = is_pull;
  for (const Case& c : cases) s.reductions.push_back({c.place, is_pull ? "s" : "d", op, c.value, is_pull ? "d" : "s"});
  plan.statements = {s};
  return plan;
}

/// Like the reference, and with rows of the form that is expected.
Outcome outcome_of(const RandomPlan& plan, Loop expected) {
  const Plan parsed = Plan::parse(plan.to_json());
  const Statement s = with_own_rank(parsed.model().statements[0]);
  INFO(plan.to_json());
  CHECK(goes_by_rows(parsed.model(), s));
  const auto loop = loop_of_rows(parsed.model(), s);
  CHECK((!loop ? Loop::none : loop->is_listed ? Loop::listed : Loop::beside) == expected);
  Outcome out = compare_with_reference(plan, 3);
  UNSCOPED_INFO(out.what);
  CHECK(out.kind != Outcome::Kind::different);
  return out;
}

void check(const std::vector<std::string>& clauses, const std::vector<Case>& cases,
           const std::vector<std::string>& types = {"f64", "i16", "f32", "c128"}, bool is_pull = false) {
  Loop expected = Loop::beside;
  for (const Case& c : cases)
    if (c.loop == Loop::none || expected == Loop::none) expected = Loop::none;
    else if (c.loop == Loop::listed) expected = Loop::listed;
  // Where contents choose ranks, statements go by rows whatever their loops are.
  std::vector<std::string> choosing = clauses;
  const auto d = std::ranges::find(choosing, "d in world");
  if (d != choosing.end()) choosing.insert(d + 1, "list[d, 1] > -1");
  for (const std::string& type : types)
    for (const char* op : {"assign", "sum"})
      CHECK(outcome_of(plan_of(choosing, cases, op, type, is_pull), expected).kind == Outcome::Kind::identical);
  if (expected == Loop::beside)
    CHECK(outcome_of(plan_of(clauses, cases, "assign", types[0], is_pull), expected).kind == Outcome::Kind::identical);
}

}  // namespace

TEST_CASE("turns whose places lie side by side are one row, whatever is sent there", "[loop-rows]") {
  check(usual, {{"A[s * 12 + k]", "B[list[d, k]]", Loop::listed}});
  check(usual, {{"A[s * 12 + k]", "B[k]", Loop::beside}});
  check(usual, {{"A[k + s * 12 + 1]", "B[d + k]", Loop::beside}});
  check(usual, {{"A[s * 12 + k + (2 - d)]", "N[k, d]", Loop::beside}});
  check(usual, {{"M[k, s]", "B[k]", Loop::beside}});
  check(usual, {{"M[k, s]", "N[k, (d + s) % 3]", Loop::beside}});
  check(usual, {{"M[k, s]", "N[list[d, k], k % 3]", Loop::listed}});
  check(usual, {{"T[s, d % 2, k]", "B[lengths[d] - 1 - k]", Loop::listed}});
  check(usual, {{"T[s, lengths[d] % 2, k]", "B[12 + k - d]", Loop::beside}});
  check(usual, {{"A[s * 12 + k]", "k * 10 + d", Loop::listed}}, {"i64"});
}

TEST_CASE("turns that are rows of their own", "[loop-rows]") {
  check(usual, {{"A[s * 12 + 11 - k]", "B[k]", Loop::none}});
  check(usual, {{"A[s * 22 + 2 * k]", "B[k]", Loop::none}});
  check(usual, {{"A[(s * 12 + k) * 1]", "B[k]", Loop::none}});
  check(usual, {{"square[k, (k + s) % 12]", "B[k]", Loop::none}});
  check(usual, {{"wide[k, k + 12 * s]", "B[k]", Loop::none}});
  check(usual, {{"apart[s * 12 + k]", "B[k]", Loop::none}});
  check({"s = rank", "d in world", "k in range(lengths[d])", "list[d, k] > 5"},
        {{"A[s * 12 + k]", "B[list[d, k]]", Loop::none}});
  check({"s = rank", "d in world", "k in range(0, lengths[d], 2)"}, {{"A[s * 12 + k]", "B[k]", Loop::none}});
  check({"s = rank", "k in range(lengths[0])", "d = list[0, k] % 3"}, {{"A[s * 12 + k]", "B[k]", Loop::none}});
  check({"s = rank", "d in world", "k in range(lengths[d])", "i = list[d, k]"},
        {{"M[i - i + k, s]", "B[k]", Loop::none}});
}

TEST_CASE("loops in loops, bounds of all kinds, bindings", "[loop-rows]") {
  check({"s = rank", "d in world", "k in range(lengths[d])", "i = list[d, k]"},
        {{"A[s * 12 + k]", "B[i]", Loop::listed}});
  check({"s = rank", "d in world", "j in range(2)", "k in range(j, lengths[d])"},
        {{"T[s, j, k]", "B[list[d, k] + j]", Loop::listed}});
  check({"s = rank", "d in world", "j in range(2)", "k in range(j, lengths[d])"},
        {{"T[s, j, k]", "B[k + j]", Loop::beside}});
  // Numbers of turns that go on from one loop to the next, at one end only.
  check({"s = rank", "d in world", "j in range(3)", "k in range(3 * j, 3 * j + 3)", "lengths[d] >= 0"},
        {{"A[s * 12 + k]", "B[k + j]", Loop::none}});
  check({"s = rank", "d in world", "j in range(3)", "n = lengths[d] * 0 + 3 * j", "k in range(n, n + 3)"},
        {{"A[s * 12 + k]", "B[k + 3 * j]", Loop::beside}});
  check({"s = rank", "d in world", "k in {list[d, 0] ... 11}"}, {{"A[s * 12 + k]", "B[k]", Loop::beside}});
  check({"s = rank", "d in world", "lengths[d] % 2 == 0", "k in {2 ... list[d, 3]}"},
        {{"A[s * 12 + k]", "B[list[d, k]]", Loop::listed}});
  // Words that need more than 32 bits.
  check({"s = rank", "d in world", "k in range(5000000000, 5000000000 + lengths[d])"},
        {{"A[s * 12 + k - 5000000000]", "B[k - 5000000000]", Loop::beside}});
  check({"s = rank", "d in world", "k in range(5000000000, 5000000000 + lengths[d])"},
        {{"A[k - 5000000000 + s * 12]", "B[list[d, k - 5000000000]]", Loop::listed}});
}

TEST_CASE("several reductions of the same turns", "[loop-rows]") {
  check(usual,
        {{"A[s * 12 + k]", "B[list[d, k]]", Loop::listed}, {"A2[s * 12 + k]", "N[list[d, k], s]", Loop::listed}});
  check(usual, {{"A[s * 12 + k]", "B[k]", Loop::beside}, {"A2[s * 12 + k]", "B[list[d, k]]", Loop::listed}});
  check(usual, {{"A[s * 12 + k]", "B[k]", Loop::beside}, {"M[k, s]", "B[k + 1]", Loop::beside}});
  check(usual, {{"A[s * 12 + k]", "B[k]", Loop::beside}, {"T[s, d % 2, k]", "N[k, d]", Loop::beside}});
  check(usual, {{"A[s * 12 + k]", "B[k]", Loop::beside}, {"A2[s * 12 - k + 11]", "B[k]", Loop::none}});
}

TEST_CASE("turns that a rank asks for are one row where the values lie side by side", "[loop-rows]") {
  const std::vector<std::string> types{"f64", "i16", "c128"};
  const auto pulled = [&](const std::vector<Case>& cases) { check(usual, cases, types, /*is_pull=*/true); };
  pulled({{"A[d * 12 + k]", "B[k]", Loop::beside}});
  pulled({{"M[k, d]", "B[k + s]", Loop::beside}});
  pulled({{"M[k, d]", "N[k, s]", Loop::beside}});
  pulled({{"A[d * 12 + 11 - k]", "B[d + k]", Loop::listed}});
  pulled({{"M[(k + d) % 12, d]", "N[k, (d + s) % 3]", Loop::listed}});
  pulled({{"A[d * 12 + k]", "B[11 - k]", Loop::none}});
  check(usual, {{"A[d * 12 + k]", "k", Loop::none}}, {"i64"}, /*is_pull=*/true);
  pulled({{"A[d * 12 + k]", "B[k]", Loop::beside}, {"A2[d * 12 + k]", "N[k, s]", Loop::beside}});
  pulled({{"A[d * 12 + k]", "B[k]", Loop::beside}, {"A2[d * 12 + 11 - k]", "B[k + 2]", Loop::listed}});
}

TEST_CASE("fields of records in loops", "[loop-rows]") {
  for (const auto& [place, value, loop] :
       {Case{"pairs[s * 12 + k].n", "from[list[d, k]].n", Loop::listed},
        Case{"pairs[s * 12 + k].n", "from[k].n", Loop::beside}, Case{"pairs[s * 12 + k]", "from[k + d]", Loop::beside}})
    CHECK(outcome_of(plan_of(usual, {{place, value, loop}}, "assign", "f64"), loop).kind == Outcome::Kind::identical);
}

TEST_CASE("what is wrong in some turn of a loop is said as the reference says it", "[loop-rows]") {
  const std::vector<std::string> shorter{"s = rank", "d in world", "k in range(lengths[d] + 4)"};
  for (const auto& [clauses, place, value, loop] :
       {std::tuple(usual, "small[k]", "B[k]", Loop::beside),                    // the last turns, and places met twice
        std::tuple(usual, "A[s * 4 + k]", "B[list[d, k]]", Loop::listed),       // places met twice
        std::tuple(usual, "A[k - 1 + s * 12]", "B[list[d, k]]", Loop::listed),  // the first turn of the first rank
        std::tuple(usual, "A[60 + k + s]", "B[k]", Loop::beside),
        std::tuple(usual, "A[s * 12 + k]", "B[k + 16]", Loop::beside),  // where it is sent from
        std::tuple(usual, "A[s * 12 + k]", "B[2 * list[d, k] + 5]", Loop::listed),
        std::tuple(
            std::vector<std::string>{"s = rank", "d in world", "k in range(5000000000, 5000000009 + lengths[d])"},
            "small[k - 5000000000]", "B[k - 5000000000]", Loop::beside),      // in wide words
        std::tuple(shorter, "A[s * 16 + k]", "B[list[d, k]]", Loop::listed),  // the list
        std::tuple(std::vector<std::string>{"s = rank", "d in range(4)", "k in range(lengths[d % 3])"}, "A[s * 12 + k]",
                   "B[k]", Loop::beside)})
    CHECK(outcome_of(plan_of(clauses, {{place, value, loop}}, "assign", "f64"), loop).kind ==
          Outcome::Kind::both_failed);
}

TEST_CASE("what is wrong in some turn is told with the turn", "[loop-rows]") {
  using kplan::tests::claim;
  using kplan::tests::error_of;
  const std::string text = R"json({"kplan": 1, "name": "p", "parameters": {"apart": "i64"}, "buffers": {
      "x": {"type": "f64", "shape": [20]}, "y": {"type": "f64", "shape": [20]},
      "list": {"type": "i32", "shape": [20], "scope": "private", "time": "varying"},
      "count": {"type": "i32", "shape": [2], "scope": "private", "time": "varying"}}, "statements": [
      {"communicate": "x[apart * s + k]@d <<= VALUE@s where s = rank, d in world, k in range(count[d])"}]})json";
  for (const char* value : {"y[list[k]]", "y[k + 2]"})
    for (const Code code : {Code::before_return, Code::when_ready})
      kplan::tests::on_ranks(2, [&](Engine& engine) {
        const int me = engine.rank();
        const Plan plan = Plan::parse(std::string(text).replace(text.find("VALUE"), 5, value));
        Executable e = engine.compile(plan, {{"apart", 12}}, code);
        std::vector<double> x(20, -1), y(20);
        std::vector<std::int32_t> list(20), count(2);
        for (std::size_t k = 0; k < 20; ++k) y[k] = 100.0 * me + static_cast<double>(k), list[k] = static_cast<int>(k);
        e.bind("x", x), e.bind("y", y), e.bind("list", list), e.bind("count", count);
        count = {5, 8};
        e.run();
        const std::vector<double> before = x;
        count[0] = 9;  // of rank 1 the last one is outside, which rank 0 finds
        const std::string outside = error_of([&] { e.run(); });
        const auto is_said = [me](const std::string& error, const char* what) {
          return me == 0 ? error.find(what) != std::string::npos : error.empty();
        };
        claim(is_said(outside, "index 20 is outside the 20 elements of `x`"), "nothing is outside");
        claim(is_said(outside, "k = 8"), "the turn is another one");
        claim(x == before, "a run that fails has written");
        count[0] = me == 0 ? 14 : 3;  // 12 and 13 from both
        const std::string twice = error_of([&] { e.run(); });
        claim(is_said(twice, "KP-P060") &&
                  is_said(twice, "from rank 0 when s = 0, k = 12 and from rank 1 when s = 1, k = 0"),
              "a place is assigned twice");
        claim(x == before, "a run that fails has written");
        count[0] = 6;
        e.run();
      });
}
