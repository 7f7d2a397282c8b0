// Messages that go to all others alike: in pieces that reach all of them, whole, and what is left when one takes its
// time.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "tests/engine/on_ranks.hpp"
#include "tests/engine/two_ranks.hpp"
#include "tests/variable.hpp"

using namespace kplan;
using tests::claim;
using tests::on_ranks;

namespace {

constexpr std::size_t count = 60000;  ///< several times what a piece holds, also of one rank's share

/// In these, values are made when they are packed, so that they are not lent.
Plan plan_of(const std::string& statements) {
  return Plan::parse(R"json({"kplan": 1, "name": "alike", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "f64", "shape": ["n", 2]}, "b": {"type": "f32", "shape": ["n", 3]}, "c": {"type": "f64", "shape": ["n"]}},
    "statements": [)json" +
                     statements + "]}");
}

struct Arrays {
  std::vector<double> a = std::vector<double>(2 * count), c = std::vector<double>(count);
  std::vector<float> b = std::vector<float>(3 * count);

  Executable compiled(Engine& engine, const std::string& statements) {
    Executable out = engine.compile(plan_of(statements), {{"n", static_cast<std::int64_t>(count)}});
    out.bind("a", a);
    out.bind("b", b);
    out.bind("c", c);
    fill(engine.rank());
    return out;
  }
  static float value(int rank, std::size_t k) {
    return static_cast<float>(k % 997) + 1000.f * static_cast<float>(rank);
  }
  void fill(int rank) {
    for (std::size_t k = 0; k < count; ++k) b[3 * k + 1] = value(rank, k);
  }
  /// Whether `a` has what `sender` gives for each element.
  template <class Sender>
  bool is_right(const Sender& sender, double times = 2) const {
    for (std::size_t k = 0; k < count; ++k)
      if (a[2 * k + 1] != times * value(sender(k), k)) return false;
    return true;
  }
};

const std::string
    broadcast = R"json({"communicate": "a[k, 1]@i <<= b[k, 1] * 2@1 where i in world, k in range(n)"})json",
    gather =
        R"json({"communicate": "a[k, 1]@i <<= b[k, 1] * 2@j where i in world, j in world, k in range(n * j / size, n * (j + 1) / size)"})json";

int owner_of(std::size_t k, int ranks) {
  int out = 0;
  while (k >= count * static_cast<std::size_t>(out + 1) / static_cast<std::size_t>(ranks)) ++out;
  return out;
}

}  // namespace

TEST_CASE("what goes to all alike is right whichever way each run sends it") {
  for (const int ranks : {2, 3, 4}) {
    on_ranks(ranks, [&](Engine& engine) {
      Arrays of_broadcast, of_gather;
      Executable x = of_broadcast.compiled(engine, broadcast), y = of_gather.compiled(engine, gather);
      tests::run_either_way(x, engine.rank(), 12);
      tests::run_either_way(y, engine.rank(), 12);
      claim(of_broadcast.is_right([](std::size_t) { return 1; }), "the broadcast is right");
      claim(of_gather.is_right([&](std::size_t k) { return owner_of(k, ranks); }), "the gather is right");
    });
  }
}

TEST_CASE("sums over all ranks are right where each sends the same to all") {
  on_ranks(3, [](Engine& engine) {
    Arrays arrays;
    // Not `fresh`, so that it goes in one step.
    Executable x = arrays.compiled(
        engine,
        R"json({"communicate": "a[k, 1]@i << sum << b[k, 1]@j where i in world, j in world, k in range(n)"})json");
    tests::run_either_way(x, engine.rank(), 6);
    for (std::size_t k = 0; k < count; ++k)
      claim(arrays.a[2 * k + 1] == 6.0 * (Arrays::value(0, k) + Arrays::value(1, k) + Arrays::value(2, k)),
            "each run has added what all ranks have");
  });
}

TEST_CASE("sums are right whose shares go to all alike") {
  const tests::Variable none_lent("KPLAN_LEND_BYTES", "0");
  for (const int ranks : {3, 4}) {
    on_ranks(ranks, [=](Engine& engine) {
      Arrays arrays;
      Executable x = arrays.compiled(
          engine,
          R"json({"communicate": "a[k, 1]@i << sum << b[k, 1]@j where i in world, j in world, k in range(n)", "fresh": true})json");
      tests::run_either_way(x, engine.rank(), 6);
      for (std::size_t k = 0; k < count; ++k) {
        double sum = 0;
        for (int j = 0; j < ranks; ++j) sum += Arrays::value(j, k);
        claim(arrays.a[2 * k + 1] == sum, "every rank has what all ranks have together");
      }
    });
  }
}

TEST_CASE("who takes its time does not keep the others of a broadcast waiting") {
  on_ranks(4, [](Engine& engine) {
    Arrays of_x, of_y;
    Executable x = of_x.compiled(engine, broadcast), y = of_y.compiled(engine, gather);
    for (int k = 0; k < 6; ++k) {
      if (engine.rank() != 1 && engine.rank() == k % 4) {
        // All others must end their x before y can end here.
        x.start();
        y.run();
        x.wait();
      } else {
        x.run();
        if (engine.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        y.run();
      }
    }
    claim(of_x.is_right([](std::size_t) { return 1; }), "the broadcasts are right");
    claim(of_y.is_right([](std::size_t k) { return owner_of(k, 4); }), "the gathers are right");
  });
}

TEST_CASE("broadcasts and gathers of one plan share what carries them") {
  on_ranks(3, [](Engine& engine) {
    Arrays arrays;
    Executable x = arrays.compiled(
        engine, R"json({"communicate": "c[k]@i <<= b[k, 1] * 3@1 where i in world, k in range(n)"},)json" + gather +
                    R"json(, {"communicate": "b[k, 0]@i <<= f32(c[k] * 2)@0 where i in world, k in range(n)"})json");
    tests::run_either_way(x, engine.rank(), 9);
    claim(arrays.is_right([](std::size_t k) { return owner_of(k, 3); }), "the gather is right");
    for (std::size_t k = 0; k < count; ++k)
      claim(arrays.b[3 * k] == 6 * Arrays::value(1, k), "the broadcast of a broadcast is right");
  });
}

TEST_CASE("who has taken what was lent to all may end before the others have taken it") {
  PlanBuilder builder("broadcast");
  builder.parameter("n", Scalar::i64).buffer("sent", Scalar::f64, {"n"}).buffer("received", Scalar::f64, {"n"});
  builder.communicate("pass", "received@i <<= sent@0 where i in world");
  const Plan plan = builder.build();
  for (int world = 0; world < 20; ++world)
    on_ranks(3, [&](Engine& engine) {
      std::vector<double> sent(count, 7.0 + world), received(count);
      Executable x = engine.compile(plan, {{"n", static_cast<std::int64_t>(count)}});
      x.bind("sent", sent);
      x.bind("received", received);
      if (engine.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      x.start();
      x.wait();
      claim(received == sent, "it has come");
    });
}
