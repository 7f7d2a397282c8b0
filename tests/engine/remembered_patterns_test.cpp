// Statements whose pattern both ends work out from varying parameters: patterns come back, and are those of their
// parameters, whatever else has changed meanwhile.
#include <catch2/catch.hpp>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using tests::claim, tests::on_ranks;

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
  on_ranks(3, [](Engine& engine) {
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
  on_ranks(2, [](Engine& engine) {
    constexpr std::int64_t n = 1500;
    Executable e = engine.compile(plane_plan(), {{"n", n}, {"k", 0}, {"length", 2}, {"scale", 1.0}});
    std::vector<double> u(7 * n), got(7 * n);
    e.bind("u", u);
    e.bind("got", got);
    for (int round = 1; round <= 2; ++round)
      for (std::int64_t k = 0; k < n; ++k) {
        const auto at = static_cast<std::size_t>(7 * k + 1);
        u[at] = static_cast<double>(10 * round + engine.rank());
        e.set("k", k);
        e.run();
        claim(got[at] == 10 * round + 1 - engine.rank(), "plane " + std::to_string(k));
      }
  });
}

TEST_CASE("a pattern that is wrong is wrong each time, and those before it stay right") {
  on_ranks(2, [](Engine& engine) {
    Executable e = engine.compile(plane_plan(), {{"n", planes}, {"k", 0}, {"length", 7}, {"scale", 1.0}});
    std::vector<double> u(7 * planes, 1.0 + engine.rank()), got(7 * planes);
    e.bind("u", u);
    e.bind("got", got);
    for (const std::int64_t k : {2, 6, 2, 6, 3}) {
      e.set("k", k);
      std::string message;
      try {
        e.run();
      } catch (const PlanError& error) {
        message = error.what();
      }
      if (k == 6) claim(message.find("index 6 is outside the 6") != std::string::npos, message);
      else claim(message.empty() && got[static_cast<std::size_t>(7 * k)] == 2.0 - engine.rank(), message);
    }
  });
}
