// Statements whose pattern both ends work out from varying parameters: patterns come back, and are those of their
// parameters, whatever else has changed meanwhile.
#include <catch2/catch.hpp>

#include "engine/analysis/knowledge.hpp"
#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using tests::claim, tests::error_of, tests::on_ranks;

namespace {

constexpr std::int64_t planes = 6;

/// A plane of u, the second of two varying parameters long, goes to the next rank and is scaled there.
Plan plane_plan() {
  PlanBuilder builder("planes");
  builder.parameter("n", Scalar::i64).parameter("k", Scalar::i64, Scope::uniform, Time::varying);
  builder.parameter("length", Scalar::i64, Scope::uniform, Time::varying);
  builder.parameter("scale", Scalar::f64, Scope::uniform, Time::varying);
  builder.buffer("u", Scalar::f64, {"n", "7"}).buffer("got", Scalar::f64, {"n", "7"});
  builder.communicate("plane", "got[k, 0:length]@(rank + 1) % size <<= scale * u[k, 0:length]@rank");
  return builder.build();
}

}  // namespace

TEST_CASE("runs with parameters met before move what these say, with the values of now") {
  for (const int ranks : {2, 3, 5})
    on_ranks(ranks, [](Engine& engine) {
      Executable e = engine.compile(plane_plan(), {{"n", planes}, {"k", 0}, {"length", 1}, {"scale", 1.0}});
      std::vector<double> u(7 * planes), got(7 * planes), expected(7 * planes);
      e.bind("u", u);
      e.bind("got", got);
      const int from = (engine.rank() + engine.size() - 1) % engine.size();
      for (int run = 0; run < 200; ++run) {
        const std::int64_t k = run * 5 % planes, length = 1 + run / 7 % 7;
        const double scale = 1 + run % 4;
        for (std::size_t i = 0; i < u.size(); ++i) u[i] = 1000.0 * run + 100 * engine.rank() + static_cast<double>(i);
        e.set("k", k);
        e.set("length", length);
        e.set("scale", scale);
        e.run();
        for (std::int64_t i = 7 * k; i < 7 * k + length; ++i)
          expected[static_cast<std::size_t>(i)] = scale * (1000.0 * run + 100 * from + static_cast<double>(i));
        claim(got == expected, "run " + std::to_string(run));
      }
    });
}

TEST_CASE("more patterns than are remembered, one after the other and again") {
  PlanBuilder builder("moved");
  builder.parameter("n", Scalar::i64).parameter("k", Scalar::i64, Scope::uniform, Time::varying);
  builder.buffer("u", Scalar::f64, {"n", "7"}).buffer("got", Scalar::f64, {"n", "7"});
  builder.communicate("moved", "got[k + i, 1]@(rank + 1) % size <<= u[k + i, 1]@rank where i in range(1)");
  const Plan plan = builder.build();
  for (const int ranks : {2, 4})
    on_ranks(ranks, [&](Engine& engine) {
      constexpr std::int64_t n = 1500;
      Executable e = engine.compile(plan, {{"n", n}, {"k", 0}});
      std::vector<double> u(7 * n), got(7 * n);
      e.bind("u", u);
      e.bind("got", got);
      for (int round = 1; round <= 3; ++round)
        for (std::int64_t k = 0; k < n; ++k) {
          const auto at = static_cast<std::size_t>(7 * k + 1);
          u[at] = static_cast<double>(10 * round + engine.rank());
          e.set("k", k);
          e.run();
          const int from = (engine.rank() + engine.size() - 1) % engine.size();
          claim(got[at] == 10 * round + from, "plane " + std::to_string(k));
        }
    });
}

TEST_CASE("patterns are remembered by the expressions in which parameters decide them") {
  const auto expressions_of = [](const std::string& text, const std::string& group = "") {
    const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "p",
      "parameters": {"n": {"type": "i64"}, "mine": {"type": "i64", "scope": "private"},
                     "j": {"type": "i64", "time": "varying"}, "k": {"type": "i64", "time": "varying"},
                     "own": {"type": "i64", "scope": "private", "time": "varying"}},
      "groups": {"pairs": {"color": "rank / 2", "key": "rank"}},
      "buffers": {"a": {"type": "i64", "shape": ["n", 6]}, "b": {"type": "i64", "shape": ["n", 6]}},
      "statements": [{"communicate": ")json" +
                                  text + R"json(", "knowledge": "corresponding")json" +
                                  (group.empty() ? "" : ", \"in\": \"" + group + "\"") + "}]}");
    const Statement& s = plan.model().statements[0];
    const auto text_of = [&](const Expr& e) { return s.text.text.substr(e.span.begin, e.span.end - e.span.begin); };
    std::string out;
    for (const VaryingExpression& e : varying_expressions(plan.model(), s))
      out += (out.empty() ? "" : ", ") + text_of(*e.value) + (e.modulus ? " mod " + text_of(*e.modulus) : "");
    return out;
  };
  CHECK(expressions_of("a[0, 0]@k % size <<= b[1, 1]@k % size + 1 - k % size") == "k % size + 1 - k % size, k % size");
  CHECK(expressions_of("a[0, 0]@(rank + 2 * k) % size <<= b[0, 0]@rank") == "2 * k mod size");
  CHECK(expressions_of("a[0, 0]@(i + k - j + n) % size <<= b[0, 0]@i where i in world") == "k mod size, j mod size");
  CHECK(expressions_of("a[0, 0]@(rank + k * j * rank) % size <<= b[0, 0]@rank") == "k * j");
  CHECK(expressions_of("a[0, 0]@(rank + k) % (j + 1) <<= b[0, 0]@rank") == "k, j + 1");
  CHECK(expressions_of("a[k + i, 0]@1 <<= b[i, 0]@0 where i in {k ... j + n}, k < j || n == 2") ==
        "k, j + n, k < j || n == 2");
  CHECK(expressions_of("a[0, 0:k]@1 <<= k * b[0, 0:k]@0") == "k");
  // What other ranks could find otherwise.
  CHECK(expressions_of("a[0, 0]@(own + 1) % size <<= b[0, 0]@(rank + k) % mine") == "k, own");
  CHECK(expressions_of("a[0, 0]@k % size <<= b[0, 0]@(rank + j) % size", "pairs") == "j, k");
}

TEST_CASE("a panel's owner and where it lies there vary") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "panels",
    "parameters": {"panels": {"type": "i64"}, "k": {"type": "i64", "time": "varying"}, "t": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": [3, "panels * 2"]}, "panel": {"type": "i64", "shape": [3, 2]},
                "ring": {"type": "i64", "shape": [1]}},
    "statements": [
      {"name": "panel", "communicate":
        "panel[:, :]@r <<= a[:, k / size * 2 : (k / size + 1) * 2]@k % size where r in world, k >= 0"},
      {"name": "ring", "communicate": "ring[0]@(rank + t) % size <<= a[2, k % 2]@rank"}]})json");
  for (const int ranks : {1, 2, 3, 5})
    on_ranks(ranks, [&](Engine& engine) {
      constexpr std::int64_t panels = 8;
      const std::int64_t rank = engine.rank(), size = engine.size();
      Executable e = engine.compile(plan, {{"panels", panels}, {"k", 0}, {"t", 0}});
      std::vector<std::int64_t> a(6 * panels), panel(6), ring(1);
      e.bind("a", a);
      e.bind("panel", panel);
      e.bind("ring", ring);
      const auto value = [](std::int64_t run, std::int64_t owner, std::int64_t i) {
        return 10000 * run + 100 * owner + i;
      };
      for (std::int64_t run = 0; run < 150; ++run) {
        const std::int64_t k = run * 7 % (panels * size + 1) - 1, t = run * 5 - 300;
        for (std::int64_t i = 0; i < 6 * panels; ++i) a[static_cast<std::size_t>(i)] = value(run, rank, i);
        const std::vector<std::int64_t> before = panel;
        e.set("k", k);
        e.set("t", t);
        e.run();
        for (std::int64_t i = 0; i < 6; ++i) {
          const auto n = static_cast<std::size_t>(i);
          const std::int64_t at = i / 2 * panels * 2 + k / size * 2 + i % 2;
          claim(panel[n] == (k < 0 ? before[n] : value(run, k % size, at)), "panel in run " + std::to_string(run));
        }
        const std::int64_t from = ((rank - t) % size + size) % size;
        claim(ring[0] == value(run, from, 2 * panels * 2 + (k < 0 ? 1 : k % 2)), "ring in run " + std::to_string(run));
      }
      e.set("k", panels * size);
      claim(error_of([&] { e.run(); }).find("is outside the 16") != std::string::npos, "a panel that is not there");
    });
}

TEST_CASE(
    "sums that overflow are errors, be their remainders met before or not, and what some rank does not remember is "
    "right") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "sums",
    "parameters": {"n": {"type": "i64"}, "j": {"type": "i64", "time": "varying"}, "k": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "u8", "shape": ["n"]}, "got": {"type": "u8", "shape": ["n"]}},
    "statements": [{"communicate":
      "got[:]@r <<= a[:]@s where s in world, (s + j + k) % size == 1 % size, r in world"}]})json");
  constexpr std::int64_t n = 1100000;  // the sender of five ranks has more elements than it keeps
  for (const int ranks : {2, 5})
    on_ranks(ranks, [&](Engine& engine) {
      const std::int64_t size = engine.size(), near = (std::int64_t{1} << 62) / size * size;
      Executable e = engine.compile(plan, {{"n", n}, {"j", 0}, {"k", 0}});
      std::vector<std::uint8_t> a(n), got(n);
      e.bind("a", a);
      e.bind("got", got);
      for (int run = 0; run < 10; ++run) {
        std::ranges::fill(a, static_cast<std::uint8_t>(10 * run + engine.rank()));
        const bool is_too_large = run == 4 || run == 7;
        e.set("j", is_too_large ? near : 3 * size);
        e.set("k", is_too_large ? near + 2 * size : 0);
        const std::string message = error_of([&] { e.run(); });
        claim(is_too_large == (message.find("overflows") != std::string::npos), message);
        claim(
            is_too_large || (message.empty() && got[7] == 10 * run + 1 && got == std::vector<std::uint8_t>(n, got[7])),
            "run " + std::to_string(run) + ": " + message);
      }
    });
}

TEST_CASE("a pattern that was refused when it was met first is right later, whatever went before it") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "refused",
    "parameters": {"n": {"type": "i64"}, "k": {"type": "i64", "time": "varying"}, "j": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "u8", "shape": [2, "n"]}, "b": {"type": "u8", "shape": [2, "n"]}},
    "statements": [{"communicate": "a[k, 0:j]@1 << max << b[k, 0:j]@0"}]})json");
  constexpr std::int64_t n = 5000000;  // more elements than are kept
  on_ranks(2, [&](Engine& engine) {
    Executable e = engine.compile(plan, {{"n", n}, {"k", 0}, {"j", 0}});
    std::vector<std::uint8_t> a(2 * n), b(2 * n, 7);
    e.bind("a", a);
    e.bind("b", b);
    const auto run = [&](std::int64_t k, std::int64_t j) {
      std::ranges::fill(a, std::uint8_t{1});
      e.set("k", k);
      e.set("j", j);
      const std::string message = error_of([&] { e.run(); });
      const auto changed = std::ranges::count(a, 7);
      claim(changed == (engine.rank() == 1 && k < 2 ? j : 0), std::to_string(changed) + " were written");
      claim(message.empty() == (k < 2), message);
    };
    for (int i = 0; i < 3; ++i) run(0, n);
    run(2, 10);
    run(0, 10);
    run(1, 10);
  });
}

TEST_CASE("all ranks hear of a plane that is not there, be it met before or not") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "bystanders",
    "parameters": {"k": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": [4, 2]}, "b": {"type": "i64", "shape": [2]}},
    "statements": [{"communicate": "b[:]@1 <<= a[k / size, :]@k % size"}]})json");
  for (const int ranks : {2, 5})
    on_ranks(ranks, [&](Engine& engine) {
      const std::int64_t size = engine.size();
      Executable e = engine.compile(plan, {{"k", 0}});
      std::vector<std::int64_t> a(8), b(2);
      e.bind("a", a);
      e.bind("b", b);
      for (int run = 0; run < 24; ++run) {
        std::ranges::fill(a, 100 * run + engine.rank());
        const std::int64_t k = run % 3 == 2 ? 4 * size + 1 : run % 2 == 0 ? 1 : size;
        e.set("k", k);
        const std::string message = error_of([&] { e.run(); });
        claim((run % 3 == 2) == (message.find("is outside the 4") != std::string::npos), message);
        claim(run % 3 == 2 || engine.rank() != 1 || b[0] == 100 * run + k % size, "run " + std::to_string(run));
      }
    });
}

TEST_CASE("rows of a factorization are right when they are new, and when they are met again") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "rows",
    "parameters": {"n": {"type": "i64"}, "k": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": ["n", "n"]}, "c": {"type": "i64", "shape": ["n", "n"]},
                "row": {"type": "i64", "shape": ["n"]}, "turns": {"type": "i64", "shape": ["n"]}},
    "statements": [
      {"name": "row", "communicate": "row[k:]@r <<= a[k / size, k:]@k % size where r in world"},
      {"name": "turns", "communicate":
        "turns[i]@r <<= a[k / size, i]@k % size where r in world, r != 0, i in {k ... n - 1}"},
      {"name": "ring", "communicate": "c[k / size, k:]@(rank + 1) % size <<= c[(k + 1) / size, k:]@rank"}]})json");
  for (const int ranks : {1, 2, 3, 5})
    on_ranks(ranks, [&](Engine& engine) {
      constexpr std::int64_t n = 9;
      const std::int64_t rank = engine.rank(), size = engine.size();
      Executable e = engine.compile(plan, {{"n", n}, {"k", 0}});
      std::vector<std::int64_t> a(n * n), c(n * n), row(n), turns(n);
      e.bind("a", a);
      e.bind("c", c);
      e.bind("row", row);
      e.bind("turns", turns);
      const auto value = [](std::int64_t run, std::int64_t owner, std::int64_t i) {
        return 100000 * run + 1000 * owner + i;
      };
      for (std::int64_t run = 0; run < 4 * n; ++run) {
        const std::int64_t k = run * 2 % n, from = (rank + size - 1) % size;
        for (std::int64_t i = 0; i < n * n; ++i)
          a[static_cast<std::size_t>(i)] = c[static_cast<std::size_t>(i)] = value(run, rank, i);
        std::vector<std::int64_t> wanted = c, row_wanted = row, turns_wanted = turns;
        for (std::int64_t i = k; i < n; ++i) {
          wanted[static_cast<std::size_t>(k / size * n + i)] = value(run, from, (k + 1) / size * n + i);
          row_wanted[static_cast<std::size_t>(i)] = value(run, k % size, k / size * n + i);
          if (rank != 0) turns_wanted[static_cast<std::size_t>(i)] = value(run, k % size, k / size * n + i);
        }
        e.set("k", k);
        const std::string message = error_of([&] { e.run(); });
        const bool is_outside = (k + 1) / size == n;  // a row that is not there, on one rank
        claim(is_outside == (message.find("is outside the 9") != std::string::npos), message);
        if (is_outside) continue;
        claim(row == row_wanted && turns == turns_wanted && c == wanted, "run " + std::to_string(run));
      }
      e.set("k", n);  // nothing moves, be it that the rows are there or not
      const std::string message = error_of([&] { e.run(); });
      claim(size == 1 || message.empty(), message);
    });
}

TEST_CASE("a pattern that is wrong is wrong each time, and those before it stay right") {
  for (const int ranks : {2, 5})
    on_ranks(ranks, [](Engine& engine) {
      Executable e = engine.compile(plane_plan(), {{"n", planes}, {"k", 0}, {"length", 7}, {"scale", 1.0}});
      std::vector<double> u(7 * planes, 1.0 + engine.rank()), got(7 * planes);
      e.bind("u", u);
      e.bind("got", got);
      const int from = (engine.rank() + engine.size() - 1) % engine.size();
      for (const std::int64_t k : {2, 6, 2, 6, 2, 6, 2, 3}) {
        e.set("k", k);
        const std::string message = error_of([&] { e.run(); });
        if (k == 6) claim(message.find("index 6 is outside the 6") != std::string::npos, message);
        else claim(message.empty() && got[static_cast<std::size_t>(7 * k)] == 1.0 + from, message);
      }
    });
}

TEST_CASE("what only one receiver finds wrong is found there each time, and by nobody else") {
  // Rank 1 thinks that more comes than rank 0 sends, but where k is 2.
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "claims",
    "parameters": {"k": {"type": "i64", "time": "varying"}, "more": {"type": "i64", "scope": "private"}},
    "buffers": {"u": {"type": "i64", "shape": [8]}, "got": {"type": "i64", "shape": [8]}},
    "statements": [{"name": "part", "knowledge": "corresponding",
                    "communicate": "got[j]@(rank + 1) % size <<= u[j]@rank where j in range(k == 2 ? k : k + more)"}]})json");
  for (const int ranks : {2, 5})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(plan, {{"k", 2}, {"more", engine.rank() == 1 ? 1 : 0}});
      std::vector<std::int64_t> u(8), got(8);
      e.bind("u", u);
      e.bind("got", got);
      const int from = (engine.rank() + engine.size() - 1) % engine.size();
      std::int64_t run = 0;
      for (const std::int64_t k : {2, 3, 2, 3, 2, 3, 0, 2, 0, 3, 0, 3}) {
        u[1] = ++run * 10 + engine.rank();
        e.set("k", k);
        const std::string message = error_of([&] { e.run(); });
        // Rank 2 is sent more than it expects.
        const bool is_wrong = k != 2 && (engine.rank() == 1 || from == 1);
        claim(is_wrong == (message.find("KP-A003") != std::string::npos) && (is_wrong || message.empty()), message);
        claim(k == 0 || is_wrong || got[1] == run * 10 + from, "what came is wrong");
      }
    });
}
