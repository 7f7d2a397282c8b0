// Which varying statements go by rows, and what runs of some bring that came to it by their slices alone.
#include "engine/runtime/row_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "plans/json_reader.hpp"
#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using kplan::tests::claim;
using kplan::tests::error_of;
using kplan::tests::on_ranks;

namespace {

std::string exchange_of_parts(const std::string& statement) {
  return fmt::format(
      R"({{"kplan": 1, "name": "p", "parameters": {{"n": "i64", "turn": {{"type": "i64", "time": "varying", "default": 0}},
                   "own": {{"type": "i64", "scope": "private", "time": "varying", "default": 0}}}},
    "buffers": {{"x": {{"type": "i32", "shape": ["n"]}}, "y": {{"type": "i32", "shape": ["n"]}},
                "count": {{"type": "i32", "shape": ["size"], "time": "varying"}},
                "first": {{"type": "i32", "shape": ["size"], "time": "varying"}},
                "place": {{"type": "i32", "shape": ["size"], "time": "varying"}},
                "mine": {{"type": "i32", "shape": ["size"], "scope": "private", "time": "varying"}}}},
    "statements": [{{"name": "s", "communicate": "{}"}}]}})",
      statement);
}

Statement statement_of(const std::string& text) {
  return check_plan(read_plan("p.json", exchange_of_parts(text)))->statements[0];
}

bool is_by_rows(const std::string& text) {
  const auto plan = check_plan(read_plan("p.json", exchange_of_parts(text)));
  return goes_by_rows(*plan, with_own_rank(plan->statements[0]));
}

bool has_own_rank(const std::string& text) {
  return with_own_rank(statement_of(text)).clauses[0].kind == ClauseKind::binding;
}

bool is_by_rows_when_new(const std::string& text) {
  const auto plan = check_plan(read_plan("p.json", exchange_of_parts(text)));
  return goes_by_rows_when_new(*plan, with_own_rank(plan->statements[0]));
}

}  // namespace

TEST_CASE("statements go by rows where contents choose slices or elements, or environments are few", "[row-choice]") {
  const std::string parts = "x[place[s] : place[s] + c]@d <<= y[f : f + c]@";
  CHECK(is_by_rows(parts + "s where s in world, d in world, f = first[d], c = count[d]"));
  CHECK(is_by_rows(parts + "rank where s = rank, d in world, f = first[d], c = count[d]"));
  CHECK(is_by_rows("x[f : f + 2]@0 <<= y[2 * k : 2 * k + 2]@1 where k in range(size), f = first[k]"));
  CHECK(is_by_rows("x[0:c]@0 <<= y[0:c]@1 where c = count[0]"));
  CHECK(is_by_rows("x[0]@d << sum << y[first[d]]@rank where d in world, place[0] > 0"));
  CHECK(is_by_rows("x[k]@(rank + 1) % size <<= y[mine[k]]@rank where k in range(mine[0])"));
  CHECK(is_by_rows("x[k]@0 << sum << y[i]@rank where k in range(mine[0]), i = 2 * mine[k] + 1"));
  // Every rank could replay these, and none remember them.
  CHECK(is_by_rows("x[k]@(rank + 1) % size <<= y[mine[k]]@rank where k in range(size)"));
  CHECK(is_by_rows("x[place[k]]@(s + 1) % size <<= y[first[k]]@s where s in world, k in range(size)"));
  CHECK(is_by_rows("x[k : k + 1]@k % size <<= y[p / 2 : p / 2 + 1]@p % size where k in range(n), p = first[k]"));
  CHECK(is_by_rows("x[k]@0 <<= y[k]@p % size where k in range(n), p = first[k % size]"));
  CHECK_FALSE(is_by_rows("x[k]@(rank + 1) % size << sum << y[mine[k]]@rank where k in range(size)"));
  CHECK_FALSE(is_by_rows("x[k]@(s + 1) % size <<= y[mine[k]]@s where s in world, k in range(s)"));
  // Turns of the innermost loop are as a slice where they lie side by side, and many of one element where they do not.
  CHECK(is_by_rows("x[4 * k + j]@0 <<= y[mine[k] + j]@rank where k in range(mine[0]), j in range(4)"));
  CHECK(is_by_rows("x[n * s + k]@d <<= y[f + k]@s where s = rank, d in world, f = first[d], k in range(mine[d])"));
  CHECK(is_by_rows("x[s + k]@(rank + 1) % size <<= y[k]@rank where s = rank, k in range(mine[0])"));
  CHECK_FALSE(is_by_rows("x[4 * k + j]@0 <<= y[mine[k] - j]@rank where k in range(mine[0]), j in range(4)"));
  CHECK_FALSE(is_by_rows("x[4 * k + j]@0 << sum << y[mine[k] + j]@rank where k in range(mine[0]), j in range(4)"));
  // What one end knows in closed form, or applies by loops, does not.
  CHECK_FALSE(is_by_rows("x[k]@0 <<= y[f + k]@1 where k in range(n), f = first[0]"));
  CHECK_FALSE(is_by_rows("x[2 * k : 2 * k + c]@0 <<= y[2 * k : 2 * k + c]@1 where k in range(n), c = count[0]"));
  CHECK_FALSE(
      is_by_rows("x[place[s] : place[s] + c]@d << sum << y[f : f + c]@s where s in world, d in world, "
                 "f = first[d], c = count[d]"));
}

TEST_CASE("a rank that decides is the own one where nothing else names it", "[row-choice]") {
  CHECK(has_own_rank("x[s]@d <<= y[d]@s where s in world, d in world, count[d] > 0"));
  CHECK_FALSE(has_own_rank("x[s]@d <<= y[d]@s where s in world, d in world, d != s, count[d] > 0"));
  CHECK_FALSE(has_own_rank("x[s]@d <<= y[d]@s where s in world, d in world, k in range(s)"));
  CHECK_FALSE(has_own_rank("x[s]@d <<= y[d]@(s + 1) % size where s in world, d in world, count[d] > 0"));
  CHECK_FALSE(has_own_rank("x[d]@d <<= y[s]@s, count[d]@d <<= 1@d where s in world, d in world"));
}

TEST_CASE("parts whose lengths differ in every run come to their places from all ranks", "[row-choice]") {
  const Plan plan = Plan::parse(exchange_of_parts(
      "x[place[s] : place[s] + c]@d <<= y[f : f + c]@s where s in world, d in world, f = first[d], c = count[d]"));
  for (const int ranks : {1, 2, 4})
    on_ranks(ranks, [&](Engine& engine) {
      constexpr int room = 100;
      const int n = ranks * room, me = engine.rank();
      Executable e = engine.compile(plan, {{"n", n}});
      const auto all = static_cast<std::size_t>(n), each = static_cast<std::size_t>(ranks);
      std::vector<std::int32_t> x(all), y(all), count(each), first(each), place(each);
      e.bind("x", x), e.bind("y", y), e.bind("count", count), e.bind("first", first), e.bind("place", place);
      const auto count_of = [](int from, int to, int run) { return (7 * from + 11 * to + 13 * run) % (room + 1); };
      for (int run = 0; run < 5; ++run) {
        for (int k = 0; k < n; ++k) x[static_cast<std::size_t>(k)] = -1, y[static_cast<std::size_t>(k)] = n * me + k;
        for (int r = 0, f = 0; r < ranks; f += count[static_cast<std::size_t>(r++)]) {
          const auto at = static_cast<std::size_t>(r);
          count[at] = count_of(me, r, run), first[at] = f, place[at] = (ranks - 1 - r) * room;
        }
        e.run();
        for (int from = 0; from < ranks; ++from) {
          int f = 0;
          for (int r = 0; r < me; ++r) f += count_of(from, r, run);
          for (int k = 0; k < room; ++k) {
            const int came = x[static_cast<std::size_t>((ranks - 1 - from) * room + k)];
            claim(came == (k < count_of(from, me, run) ? n * from + f + k : -1), "an element is wrong");
          }
        }
      }
    });
}

TEST_CASE("integers are pulled into slices of one element that lists choose", "[row-choice]") {
  constexpr int n = 40;
  const Plan plan = Plan::parse(R"({"kplan": 1, "name": "p", "buffers": {"x": {"type": "i64", "shape": [100]},
    "list": {"type": "i32", "shape": [40], "scope": "private", "time": "varying"},
    "owner": {"type": "i32", "shape": [40], "scope": "private", "time": "varying"}},
    "statements": [{"direction": "pull",
      "communicate": "x[i : i + 1]@rank <<= k@from where k in range(40), i = list[k], from = owner[k]"}]})");
  for (const Code code : {Code::before_return, Code::when_ready})
    on_ranks(2, [&](Engine& engine) {
      Executable e = engine.compile(plan, {}, code);
      std::vector<std::int64_t> x(100, -1);
      std::vector<std::int32_t> list(n), owner(n);
      e.bind("x", x), e.bind("list", list), e.bind("owner", owner);
      for (int run = 0; run < 3; ++run) {
        for (int k = 0; k < n; ++k) {
          const auto at = static_cast<std::size_t>(k);
          list[at] = (7 * k + engine.rank() + run) % 100, owner[at] = (k + run) % 2;
        }
        e.run();
        for (int k = 0; k < n; ++k) {
          const auto at = static_cast<std::size_t>(k);
          claim(x[static_cast<std::size_t>(list[at])] == k, "an integer is wrong");
        }
      }
    });
}

TEST_CASE("a rank that exchanges parts of one buffer with itself has both", "[row-choice]") {
  const Plan plan = Plan::parse(exchange_of_parts(
      "x[b : b + c]@rank <<= x[a : a + c]@rank where k in range(2), a = first[k], b = place[k], c = count[k]"));
  on_ranks(2, [&](Engine& engine) {
    Executable e = engine.compile(plan, {{"n", 6}});
    std::vector<std::int32_t> x{1, 2, 3, 4, 5, 6}, y(6), count{3, 2}, first{0, 4}, place{3, 0};
    e.bind("x", x), e.bind("y", y), e.bind("count", count), e.bind("first", first), e.bind("place", place);
    e.run();
    claim(x == std::vector<std::int32_t>{5, 6, 3, 1, 2, 3}, "an element is wrong");
  });
}

TEST_CASE("elements that a list chooses anew in every run, where every rank could replay the rest", "[row-choice]") {
  const Plan plan = Plan::parse(exchange_of_parts("x[k]@(rank + 1) % size <<= y[mine[k]]@rank where k in range(size)"));
  const Plan scatter =
      Plan::parse(exchange_of_parts("x[place[k]]@(s + 1) % size <<= y[first[k]]@s where s in world, k in range(size)"));
  on_ranks(3, [&](Engine& engine) {
    constexpr int n = 9;
    const int me = engine.rank(), from = (me + 2) % 3;
    std::vector<std::int32_t> x(n), y(n), count(3), first(3), place(3), mine(3);
    for (int k = 0; k < n; ++k) y[static_cast<std::size_t>(k)] = 10 * me + k;
    const auto bound = [&](const Plan& p) {
      Executable e = engine.compile(p, {{"n", n}});
      e.bind("x", x), e.bind("y", y), e.bind("count", count), e.bind("first", first), e.bind("place", place);
      e.bind("mine", mine);
      return e;
    };
    Executable gather = bound(plan), spread = bound(scatter);
    for (int run = 0; run < 4; ++run) {
      for (int k = 0; k < 3; ++k) {
        const auto at = static_cast<std::size_t>(k);
        mine[at] = (me + k * run) % n, first[at] = (k + run) % n, place[at] = (2 * k + run) % n;
      }
      std::ranges::fill(x, -1);
      gather.run();
      for (int k = 0; k < 3; ++k)
        claim(x[static_cast<std::size_t>(k)] == 10 * from + (from + k * run) % n, "an element is wrong");
      std::ranges::fill(x, -1);
      spread.run();
      for (int k = 0; k < 3; ++k)
        claim(x[static_cast<std::size_t>((2 * k + run) % n)] == 10 * from + (k + run) % n, "an element is elsewhere");
    }
    const std::vector<std::int32_t> before = x;
    mine[2] = me == 1 ? n : 0;  // on one rank only
    claim(error_of([&] { gather.run(); }).find("index 9 is outside the 9 elements of `y`") != std::string::npos,
          "an index outside is not told");
    place = {4, 4, 5};
    claim(error_of([&] { spread.run(); }).find("KP-P060") != std::string::npos, "a place is assigned twice");
    claim(x == before, "a run that fails has written");
    mine[2] = 0;
    gather.run();
  });
}

TEST_CASE("rows of a matrix that pivots choose anew in every run, from whoever has them", "[row-choice]") {
  const Plan plan =
      Plan::parse(exchange_of_parts("x[4 * k : 4 * k + 4]@k % 2 <<= y[4 * p / size * 2 : 4 * p / size * 2 + 4]@p % "
                                    "size where k in range(size), p = first[k]"));
  on_ranks(3, [&](Engine& engine) {
    constexpr int n = 40;
    const int me = engine.rank();
    std::vector<std::int32_t> x(n), y(n), first(3);
    for (int k = 0; k < n; ++k) y[static_cast<std::size_t>(k)] = 100 * me + k;
    Executable e = engine.compile(plan, {{"n", n}});
    e.bind("x", x), e.bind("y", y), e.bind("first", first);
    for (int run = 0; run < 6; ++run) {
      for (int k = 0; k < 3; ++k) first[static_cast<std::size_t>(k)] = (5 * k + run * run) % 9;
      std::ranges::fill(x, -1);
      e.run();
      for (int k = 0; k < 3; ++k)
        for (int j = 0; j < 4; ++j) {
          const int p = first[static_cast<std::size_t>(k)], came = x[static_cast<std::size_t>(4 * k + j)];
          claim(came == (k % 2 == me ? 100 * (p % 3) + 4 * p / 3 * 2 + j : -1), "a row is not that of its pivot");
        }
    }
    const std::vector<std::int32_t> before = x;
    first[1] = 60;
    claim(error_of([&] { e.run(); }).find("is outside the 40 elements of `y`") != std::string::npos,
          "a row outside is not told");
    claim(x == before, "a run that fails has written");
    first[1] = 2;
    e.run();
  });
}

TEST_CASE("what parameters decide goes by rows when they are new where it is copied and environments are few") {
  CHECK(is_by_rows_when_new("x[turn:]@r <<= y[turn:]@turn % size where r in world"));
  CHECK(is_by_rows_when_new("x[0:turn]@(s + 1) % size <<= y[0:turn]@s where s in world"));
  CHECK(is_by_rows_when_new("x[i]@1 <<= y[i]@turn % size where i in {turn ... n - 1}"));
  CHECK_FALSE(is_by_rows_when_new("x[i]@1 <<= y[2 * i]@turn % size where i in {turn ... n - 1}"));
  CHECK_FALSE(
      is_by_rows_when_new("x[0:turn]@(s + r) % size <<= y[0:turn]@(s + 1) % size where s in world, r in world"));
  CHECK_FALSE(is_by_rows_when_new("x[turn:]@1 << sum << y[turn:]@0"));
  CHECK_FALSE(is_by_rows_when_new("x[own:]@1 <<= y[turn:]@0"));  // ranks could differ in what is new
  CHECK_FALSE(is_by_rows_when_new("x[turn:]@1 <<= y[first[0]:]@0"));
}
