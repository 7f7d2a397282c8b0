// Varying parameters that only say which plane of a buffer is meant: in the engine a fixed pattern, whose buffers lie
// elsewhere in every run.
#include "engine/analysis/planes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "engine/analysis/knowledge.hpp"
#include "engine/bind.hpp"
#include "engine/schedule/schedule.hpp"
#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using tests::claim, tests::error_of, tests::on_ranks;

namespace {

/// A plan over a[n, 6] and b[n, 6], with varying parameters j and k, the private fixed p and a buffer of three indices.
Plan plan_of(const std::string& statements, const std::string& shape = R"(["n", 6])") {
  return Plan::parse(R"json({"kplan": 1, "name": "p",
    "parameters": {"n": {"type": "i64", "default": 4}, "j": {"type": "i64", "time": "varying", "default": 0},
                   "k": {"type": "i64", "time": "varying", "default": 0},
                   "mine": {"type": "i64", "scope": "private", "time": "varying", "default": 0},
                   "p": {"type": "i64", "scope": "private", "default": 1}},
    "buffers": {"a": {"type": "i64", "shape": )json" +
                     shape + R"json(}, "b": {"type": "i64", "shape": ["n", 6]},
                "rows": {"type": "i64", "shape": ["n + p", 6]}, "three": {"type": "i64", "shape": [3], "time": "fixed"}},
    "statements": [)json" +
                     statements + "]}");
}

std::string communicate(const std::string& text) { return R"({"communicate": ")" + text + "\"}"; }

/// What the planes of the plan's only statement are called, and whether its pattern is found anew at every run.
std::string planes_of_statement(const std::string& text) {
  const Plan plan = plan_of(communicate(text));
  const auto model = with_planes({std::shared_ptr<const void>(), &plan.model()});
  std::string out = infer_knowledge(*model, model->statements[0]).is_varying ? "varying" : "fixed";
  for (const Expr* plane : planes_of(*model, model->statements[0]))
    out += " " + model->buffers[static_cast<std::size_t>(plane->id)].name;
  return out;
}

std::vector<std::int64_t> numbered(std::size_t count, std::int64_t first) {
  std::vector<std::int64_t> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = first + static_cast<std::int64_t>(i);
  return out;
}

}  // namespace

TEST_CASE("planes are what uniform varying parameters choose, and nothing else in a pattern does") {
  CHECK(planes_of_statement("a[k, 0]@1 <<= b[(j + k) % n, 3]@0") == "fixed a[k, :] b[(j + k) % n, :]");
  CHECK(planes_of_statement("a[k, i]@1 <<= b[k, i] + b[j, i]@0 where i in range(6)") ==
        "fixed a[k, :] b[k, :] b[j, :]");
  CHECK(planes_of_statement("a[0, k]@1 <<= b[0, 0]@0") == "fixed a[:, k]");
  CHECK(planes_of_statement("a[k, j]@1 <<= b[0, 0]@0") == "fixed a[k, j]");
  CHECK(planes_of_statement("a[k, 0:2]@1 <<= 2 * b[k, 2:4]@0") == "fixed a[k, :] b[k, :]");
  CHECK(planes_of_statement("a[0, i]@1 <<= k * b[0, i]@0 where i in range(6)") == "fixed");
  CHECK(planes_of_statement("a[k : k + 2, 0]@1 <<= 2 * b[1, j : 3 + j]@0") == "fixed a[k:k + 2, :] b[:, j:3 + j]");
  CHECK(planes_of_statement("a[k, j * n : j * n + n]@1 <<= b[k * n : (k + 1) * n, 2]@0") ==
        "fixed a[k, j * n:j * n + n] b[k * n:(k + 1) * n, :]");
  CHECK(planes_of_statement("a[n * (k + j) : n * (k + j + 1), 0]@1 <<= b[:, 2]@0") ==
        "fixed a[n * (k + j):n * (k + j + 1), :]");
  CHECK(planes_of_statement("a[k / size, 0]@1 <<= b[0, 0]@0") == "fixed a[k / size, :]");
  // Where something else varies, too, the pattern is found anew for the values of that.
  CHECK(planes_of_statement("a[k, 0]@1 <<= b[0, 0]@0 where k < 2") == "varying a[k, :]");
  CHECK(planes_of_statement("a[k, 0:j]@1 <<= b[k, 0:j]@0") == "varying a[k, :] b[k, :]");
  CHECK(planes_of_statement("a[k / 2, 0]@k % 2 <<= b[j, 0]@0") == "varying a[k / 2, :] b[j, :]");
  CHECK(planes_of_statement("a[k : k + j, 0]@1 <<= b[k : k + j, 0]@0") == "varying");
  CHECK(planes_of_statement("a[k : n, 0]@1 <<= b[k : n, 0]@0") == "varying");
  CHECK(planes_of_statement("a[k : k + 4 : 2, 0]@1 <<= b[0:2, 0]@0") == "varying");
  CHECK(planes_of_statement("a[k : k + p, 0]@1 <<= b[0:p, 0]@0") == "varying");
  CHECK(planes_of_statement("a[0, k * n : (k + 2) * n]@1 <<= b[0, 0]@0") == "varying");
  CHECK(planes_of_statement("a[k + i, 0]@1 <<= b[i, 0]@0 where i in range(2)") == "varying");
  CHECK(planes_of_statement("a[mine, 0]@1 <<= b[0, 0]@0") == "varying");
  CHECK(planes_of_statement("a[(k + rank) % n, 0]@1 <<= b[0, 0]@0") == "varying");
  CHECK(planes_of_statement("a[three[k], 0]@1 <<= b[0, 0]@0") == "varying");
  CHECK(planes_of_statement("a[0, 0]@1 <<= b[three[k], 0]@0") == "varying");
  // Ranks could not tell alike whether such a plane lies inside.
  CHECK(planes_of_statement("rows[k, 0]@1 <<= b[0, 0]@0") == "varying");
}

TEST_CASE("statements on one plane run together where they touch other elements of it; other planes may be the same") {
  const auto phases = [](const std::string& first, const std::string& second) {
    const Plan plan = plan_of(communicate(first) + ", " + communicate(second));
    const BoundPlan bound = bind_values({std::shared_ptr<const void>(), &plan.model()}, {}, 0, 2).bound;
    const Schedule schedule = build_schedule(bound);
    return std::pair(schedule.phases.size(), schedule.statements[1].reads_what_it_writes);
  };
  const std::string first = "a[k, 0]@(i + 1) % size <<= a[k, 1]@i where i in world";
  const auto second = [](const std::string& place, const std::string& value) {
    return place + "@(i + 1) % size <<= " + value + "@i where i in world";
  };
  CHECK(phases(first, second("a[k, 2]", "a[k, 3]")) == std::pair(std::size_t{1}, false));
  CHECK(phases(first, second("a[k, 2]", "a[k, 0]")) == std::pair(std::size_t{2}, false));
  CHECK(phases(first, second("a[j, 2]", "a[k, 3]")) == std::pair(std::size_t{2}, true));
  CHECK(phases(first, second("a[k, 2]", "a[0, 3]")) == std::pair(std::size_t{2}, true));
  CHECK(phases(first, second("b[j, 2]", "b[j, 3]")) == std::pair(std::size_t{1}, false));
  CHECK(phases(first, second("b[j, 2]", "a[j, 3]")) == std::pair(std::size_t{2}, false));
}

TEST_CASE("two planes are apart where an index of one is never that of the other") {
  // What a statement reads of one and writes of the other is staged unless they are.
  const auto are_apart = [](const std::string& place, const std::string& value) {
    const Plan plan = plan_of(communicate(place + "@1 <<= " + value + "@0"));
    const auto model = with_planes({std::shared_ptr<const void>(), &plan.model()});
    const std::vector<const Expr*> planes = planes_of(*model, model->statements[0]);
    return planes.size() == 2 && are_surely_apart(*model, planes[0]->id, planes[1]->id);
  };
  CHECK(are_apart("a[(k + 1) % 2, 3]", "a[k % 2, 3]"));
  CHECK(are_apart("a[1 - k % 2, 3]", "a[k % 2, 3]"));
  CHECK(are_apart("a[k + 1, 3]", "a[k, 3]"));
  CHECK(are_apart("a[2 * k + 4 * j + 1, 3]", "a[2 * j - 2 * k, 3]"));
  CHECK(are_apart("a[(k + 4 * j) % 4, 3]", "a[(k + 2) % 4, 3]"));
  CHECK(are_apart("a[j, k + n]", "a[k, k + n - 1]"));
  CHECK_FALSE(are_apart("a[(k + 2) % 2, 3]", "a[k % 2, 3]"));
  CHECK_FALSE(are_apart("a[(k + 1) % n, 3]", "a[k % n, 3]"));  // n may be 1
  CHECK_FALSE(are_apart("a[(k + 1) % 2, 3]", "a[k % 4, 3]"));
  CHECK_FALSE(are_apart("a[(k + j) % 2, 3]", "a[k % 2, 3]"));
  CHECK_FALSE(are_apart("a[3 * k + 1, 3]", "a[2 * k, 3]"));  // k = -1
  CHECK_FALSE(are_apart("a[k, 3]", "a[j, 3]"));
  CHECK_FALSE(are_apart("a[k : k + 2, 3]", "a[k + 1, 3]"));
  CHECK_FALSE(are_apart("a[(j - k) * (-9223372036854775807 - 1), 3]", "a[k, 3]"));
  CHECK_FALSE(are_apart("a[-k * (-9223372036854775807 - 1), 3]", "a[j, 3]"));
  CHECK_FALSE(are_apart("a[9223372036854775807 + k, 3]", "a[k - 9223372036854775807, 3]"));  // does not fit
}

TEST_CASE("two time levels of one array, each run from one to the other") {
  const Plan plan = plan_of(communicate("a[(k + 1) % 2, 5]@(rank + 1) % size <<= a[k % 2, 1]@rank") + ", " +
                            communicate("a[(k + 1) % 2, 0]@(rank + size - 1) % size <<= a[k % 2, 4]@rank"));
  for (const int ranks : {1, 2, 3, 5})
    on_ranks(ranks, [&](Engine& engine) {
      const int rank = engine.rank(), size = engine.size();
      Executable e = engine.compile(plan, {{"n", 2}});
      std::vector<std::int64_t> a(12), other(12);
      for (std::int64_t t = 0; t < 40; ++t) {
        std::vector<std::int64_t>& at = t / 10 % 2 == 0 ? a : other;  // bound anew now and then
        if (t % 10 == 0) e.bind("a", at);
        std::vector<std::int64_t> expected = numbered(12, 1000 * rank + 100 * t);
        std::ranges::copy(expected, at.begin());
        const auto next = static_cast<std::size_t>((t + 1) % 2) * 6, now = static_cast<std::size_t>(t % 2) * 6;
        const auto of = [&](int r, std::size_t i) { return 1000 * r + 100 * t + static_cast<std::int64_t>(now + i); };
        expected[next + 5] = of((rank + size - 1) % size, 1);
        expected[next] = of((rank + 1) % size, 4);
        e.set("k", t);
        e.run();
        claim(at == expected, "time " + std::to_string(t));
      }
    });
}

TEST_CASE("an index outside is an error on all ranks that leaves nothing behind, and no more than that") {
  // Rank 2 and those behind it have no part in the messages.
  const Plan plan = plan_of(communicate("a[k, i]@1 <<= b[j, i]@0 where i in range(6)"));
  for (const int ranks : {2, 3, 5})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(plan);
      std::vector<std::int64_t> a(24), b = numbered(24, 100);
      e.bind("a", a);
      e.bind("b", b);
      const std::vector<std::pair<std::int64_t, std::int64_t>> planes{
          {0, 0}, {1, 4}, {2, 1}, {4, 2}, {-1, 2}, {3, -1}, {3, 3}, {std::int64_t{1} << 62, 0}, {1, 2}};
      for (const auto& [k, j] : planes) {
        e.set("k", k);
        e.set("j", j);
        const std::vector<std::int64_t> before = a;
        const std::string message = error_of([&] { e.run(); });
        const std::int64_t wrong = k < 0 || k > 3 ? k : j;
        if (wrong < 0 || wrong > 3) {
          claim(message.find("[KP-P052]") != std::string::npos &&
                    message.find("index " + std::to_string(wrong) +
                                 " is outside the 4 elements along dimension 0 of") != std::string::npos,
                message);
          claim(a == before, "something was written");
          continue;
        }
        claim(message.empty(), message);
        for (std::size_t i = 0; i < 6; ++i)
          claim(engine.rank() != 1 || a[static_cast<std::size_t>(6 * k) + i] == 100 + 6 * j + static_cast<int>(i),
                "plane " + std::to_string(k) + " of plane " + std::to_string(j));
      }
    });
}

TEST_CASE("an index outside on one rank alone is a value that differs, and nobody waits") {
  const std::string around = "a[k, 0]@(rank + 1) % size <<= b[k, 0]@rank";
  for (const std::string& statements :
       {communicate(around), communicate(around + ", a[k, 1]@(rank + size - 1) % size <<= b[k, 1]@rank"),
        communicate(around) + ", " + communicate("b[j, :]@(rank + 1) % size <<= a[j, :]@rank"),
        communicate(around) + ", " + communicate("b[0:j, 2]@(rank + size - 1) % size <<= a[0:j, 1]@rank")})
    for (const int ranks : {2, 3, 5})
      for (const std::int64_t wrong : {17, -1, 2})
        on_ranks(ranks, [&](Engine& engine) {
          Executable e = engine.compile(plan_of(statements));
          std::vector<std::int64_t> a(24), b = numbered(24, 100);
          e.bind("a", a);
          e.bind("b", b);
          e.set("k", 3);
          e.set("j", 3);
          e.run();
          e.set("k", engine.rank() == 1 ? wrong : 1);
          std::string message;
          for (int run = 0; message.empty(); ++run) {
            message = error_of([&] {
              e.start();
              e.wait();
            });
            // Who is sent what rank 1 has made, and rank 1, which is sent what others have.
            claim(run > 0 || !message.empty() || (engine.rank() != 1 && engine.rank() != 2 % ranks), "in the run");
          }
          // Rank 1 and its neighbours; others find that these have ended, and the one before it may, too.
          const bool is_told = message.find("uniform parameter `k` was set to ") != std::string::npos;
          const bool is_left = message.find("has ended") != std::string::npos;
          claim(engine.rank() > 2 || is_told || (engine.rank() == 0 && ranks > 2 && is_left),
                statements + ": " + message);
        });
}

TEST_CASE("an index without a value, and one outside where nobody moves anything") {
  on_ranks(3, [](Engine& engine) {
    std::vector<std::int64_t> a(24), b = numbered(24, 100);
    Executable e = engine.compile(plan_of(communicate("a[12 / k, 0]@1 <<= b[0, 0]@0")), {{"k", 4}});
    e.bind("a", a);
    e.bind("b", b);
    e.run();
    e.set("k", 0);
    const std::string message = error_of([&] { e.run(); });
    claim(message.find("KP-P053") != std::string::npos || message.find("zero") != std::string::npos, message);
    e.set("k", 6);
    e.run();
    claim(engine.rank() != 1 || (a[18] == 100 && a[12] == 100), "runs before and after it are right");

    Executable idle = engine.compile(plan_of(communicate("a[k, 0]@i <<= b[k, 0]@0 where i in range(n - 4)")));
    idle.bind("a", a);
    idle.bind("b", b);
    idle.set("k", 17);
    idle.run();

    // The first value is not used before a run.
    Executable late = engine.compile(plan_of(communicate("a[k, 0]@1 <<= b[k, 0]@0")), {{"k", -1}});
    late.bind("a", a);
    late.bind("b", b);
    claim(error_of([&] { late.run(); }).find("index -1 is outside") != std::string::npos, "-1 is outside");
    late.set("k", 1);
    late.run();
    claim(engine.rank() != 1 || a[6] == 106, "a plane inside");

    Executable empty = engine.compile(plan_of(communicate("a[k, 0]@1 <<= b[k, 0]@0")), {{"n", 0}});
    std::vector<std::int64_t> nothing;
    empty.bind("a", nothing);
    empty.bind("b", nothing);
    claim(error_of([&] { empty.run(); }).find("index 0 is outside the 0 elements") != std::string::npos, "none inside");
  });
}

TEST_CASE("a plane that is read may be the one that is written") {
  // Shifted by one, on this rank and to the next, read before it is written.
  const Plan plan = plan_of(communicate("a[k, 0:3]@i <<= a[j, 1:4]@i where i in world") + ", " +
                            communicate("a[k, 3:6]@(i + 1) % size <<= a[j, 2:5]@i where i in world"));
  for (const int ranks : {1, 2, 3})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(plan);
      const int rank = engine.rank(), left = (rank + engine.size() - 1) % engine.size();
      std::vector<std::int64_t> a(24);
      e.bind("a", a);
      for (std::int64_t run = 0; run < 32; ++run) {
        const std::int64_t j = run % 4, k = run / 4 % 4;
        std::vector<std::int64_t> expected = numbered(24, 100 * rank), theirs = numbered(24, 100 * left);
        for (std::vector<std::int64_t>* x : {&expected, &theirs}) {
          const std::vector<std::int64_t> before = *x;
          for (std::int64_t i = 0; i < 3; ++i)
            (*x)[static_cast<std::size_t>(6 * k + i)] = before[static_cast<std::size_t>(6 * j + i + 1)];
        }
        for (std::int64_t i = 3; i < 6; ++i)
          expected[static_cast<std::size_t>(6 * k + i)] = theirs[static_cast<std::size_t>(6 * j + i - 1)];
        std::ranges::copy(numbered(24, 100 * rank), a.begin());
        e.set("j", j);
        e.set("k", k);
        e.run();
        claim(a == expected, "planes " + std::to_string(j) + " and " + std::to_string(k));
      }
    });
}

TEST_CASE("places on two planes of one buffer are assigned twice where the planes are one") {
  const Plan plan = plan_of(communicate("a[k, 0]@1 <<= b[0, 0]@0, a[j, 0]@1 <<= b[1, 0]@0"));
  on_ranks(2, [&](Engine& engine) {
    Executable e = engine.compile(plan, {{"j", 1}});
    std::vector<std::int64_t> a(24), b = numbered(24, 100);
    e.bind("a", a);
    e.bind("b", b);
    e.run();
    claim(engine.rank() == 0 || (a[0] == 100 && a[6] == 106), "both places are written");
    e.set("k", 1);
    const std::string message = error_of([&] { e.run(); });
    claim(message.find("[KP-P060]") != std::string::npos || engine.rank() == 0, message);
  });
}

TEST_CASE("slices of a fixed length that begin where parameters say") {
  // A panel of columns, two at a time, to rows of the next rank: three of six columns, four of n rows.
  const Plan plan =
      plan_of(communicate("a[j : j + 2, k * 3 : (k + 1) * 3]@(i + 1) % size <<= b[0:2, k * 3 : k * 3 + 3]@i "
                          "where i in world"));
  for (const int ranks : {1, 2, 3})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(plan);
      const int left = (engine.rank() + engine.size() - 1) % engine.size();
      std::vector<std::int64_t> a(24), b = numbered(24, 100 * engine.rank());
      e.bind("a", a);
      e.bind("b", b);
      for (const auto& [j, k] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {0, 0}, {2, 1}, {3, 0}, {1, 1}, {-1, 0}, {1, 2}, {0, -1}, {2, 0}}) {
        std::ranges::fill(a, -1);
        e.set("j", j);
        e.set("k", k);
        const std::string message = error_of([&] { e.run(); });
        std::vector<std::int64_t> expected(24, -1);
        if (j < 0 || j > 2 || k < 0 || k > 1) {
          claim(message.find("[KP-P052]") != std::string::npos, "outside: " + message);
        } else {
          claim(message.empty(), message);
          for (std::int64_t row = 0; row < 2; ++row)
            for (std::int64_t x = 3 * k; x < 3 * k + 3; ++x)
              expected[static_cast<std::size_t>(6 * (j + row) + x)] = 100 * left + 6 * row + x;
        }
        claim(a == expected, "from row " + std::to_string(j) + ", panel " + std::to_string(k));
      }
    });
  on_ranks(2, [](Engine& engine) {
    std::vector<std::int64_t> a(24), b(24);
    for (const std::string length : {"5", "4611686018427387904"}) {
      const std::string message =
          error_of([&] { engine.compile(plan_of(communicate("a[k : k + " + length + ", 0]@1 <<= b[0, 0]@0"))); });
      claim(message.find("takes " + length + " elements along dimension 0 on rank ") != std::string::npos, message);
    }
    // None of them: wherever that is.
    Executable e =
        engine.compile(plan_of(communicate("a[k * n : (k + 1) * n, 0]@1 <<= b[j : j + n, 0]@0")), {{"n", 0}});
    std::vector<std::int64_t> nothing;
    e.bind("a", nothing);
    e.bind("b", nothing);
    e.set("k", 99);
    e.run();
  });
}

TEST_CASE("executables of one plan have planes of their own, which are those of buffers that the plan declares") {
  const Plan plan = plan_of(communicate("a[k, 0:6]@(i + 1) % size <<= b[k, 0:6]@i where i in world"));
  on_ranks(2, [&](Engine& engine) {
    std::vector<Executable> all;
    std::vector<std::vector<std::int64_t>> as(3, std::vector<std::int64_t>(24)), bs;
    for (std::int64_t x = 0; x < 3; ++x) {
      bs.push_back(numbered(24, 1000 * x + 100 * engine.rank()));
      Executable& e = all.emplace_back(engine.compile(plan));
      claim(error_of([&] { e.run(); }).find("buffer `a` is not bound") != std::string::npos, "a is not bound");
      claim(error_of([&] { e.bind("a[k, :]", as[0]); }).find("has no buffer `a[k, :]`") != std::string::npos,
            "a plane is not bound");
      const std::vector<std::int64_t> constant(24);
      claim(error_of([&] { e.bind("a", constant); }).find("KP-B028") != std::string::npos, "a is written");
      e.bind("a", as[static_cast<std::size_t>(x)]);
      e.bind("b", bs.back());
      e.set("k", x);
    }
    for (Executable& e : all) e.start();
    for (Executable& e : all) e.wait();
    for (std::size_t x = 0; x < 3; ++x) {
      std::vector<std::int64_t> expected(24);
      for (std::size_t i = 6 * x; i < 6 * x + 6; ++i)
        expected[i] = static_cast<std::int64_t>(1000 * x + 100 * static_cast<std::size_t>(1 - engine.rank()) + i);
      claim(as[x] == expected, "executable " + std::to_string(x));
    }
    // One that is used again begins at the first values.
    all.clear();
    Executable again = engine.compile(plan);
    std::vector<std::int64_t> a(24);
    again.bind("a", a);
    again.bind("b", bs[0]);
    again.run();
    claim(a[0] == 100 * (1 - engine.rank()) && a[6] == 0, "plane 0");
  });
}

TEST_CASE("planes of memory that receivers read, with sums, conversions and long messages") {
  constexpr std::int64_t n = 5, length = 20000;
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "long",
    "parameters": {"k": {"type": "i64", "time": "varying", "default": 0}},
    "buffers": {"from": {"type": "f64", "shape": [5, 20000]}, "to": {"type": "f64", "shape": [20000, 5]},
                "sums": {"type": "f32", "shape": [5, 20000]}, "weights": {"type": "f64", "shape": [5], "time": "fixed"}},
    "statements": [
      {"communicate": "to[x, k]@(rank + 1) % size <<= from[k, x]@rank where x in range(20000)"},
      {"communicate": "sums[4 - k, :]@(rank + 1) % size << sum << f32(from[k, :] * weights[k])@rank"}]})json");
  for (const int ranks : {1, 2, 3})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(plan, {{"weights", std::vector<double>{1, 2, 3, 4, 5}}});
      auto from = engine.allocate<double>(n * length, Written::seldom);
      std::vector<double> to(n * length);
      std::vector<float> sums(n * length), expected(n * length);
      e.bind("from", from);
      e.bind("to", to);
      e.bind("sums", sums);
      const int left = (engine.rank() + engine.size() - 1) % engine.size();
      for (std::int64_t run = 0; run < 20; ++run) {
        const std::int64_t k = run * 3 % n;
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>((i * 7 + run) % 97 + engine.rank());
        e.set("k", k);
        e.run();
        for (std::int64_t x = 0; x < length; ++x) {
          const auto value = static_cast<double>((static_cast<std::size_t>(k * length + x) * 7 + run) % 97 + left);
          claim(to[static_cast<std::size_t>(x * n + k)] == value, "an element has come");
          expected[static_cast<std::size_t>((4 - k) * length + x)] +=
              static_cast<float>(value * static_cast<double>(k + 1));
        }
        claim(sums == expected, "sums of run " + std::to_string(run));
      }
    });
}
