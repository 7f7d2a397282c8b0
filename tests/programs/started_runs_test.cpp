// Plans of several phases and with varying patterns that some ranks wait for, while others first compile another plan.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/programs/on_ranks.hpp"

using namespace kplan;
using namespace kplan::programs;

namespace {

constexpr std::int64_t elements = 20000;  ///< 160 KB, five pieces by default

/// Round the ring in as many phases as there are statements, from `a` to `c`; the second statement's receivers vary.
constexpr const char* round_text = R"json({"kplan": 1, "name": "round",
  "parameters": {"n": {"type": "i64"}, "shift": {"type": "i64", "time": "varying", "default": 0}},
  "buffers": {"a": {"type": "f64", "shape": ["n"]}, "b": {"type": "f64", "shape": ["n"]}, "c": {"type": "f64", "shape": ["n"]}},
  "statements": [
    {"communicate": "b@(r + 1) % size <<= a@r where r in world"},
    {"communicate": "c[k]@(rank + shift) % size <<= b[k]@rank where k in range(n)"},
    {"communicate": "b[n - 1 - k]@(r + 1) % size <<= c[k]@r where r in world, k in range(n)"}]})json";

Executable compile_another(Engine& engine, std::int64_t number) {
  PlanBuilder builder("another-" + std::to_string(number));
  builder.buffer("x", Scalar::i64, {"1"});
  builder.buffer("y", Scalar::i64, {std::to_string(engine.size())});
  builder.communicate("all", "y[i]@j <<= x[0]@i where i in world, j in world");
  return engine.compile(builder.build());
}

/// What runs send that are given up: peers may read it until the process ends.
class Kept {
 public:
  std::vector<double>& add(std::size_t count, double value) {
    const std::lock_guard lock(mutex_);
    return *all_.emplace_back(std::make_unique<std::vector<double>>(count, value));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::vector<double>>> all_;
};
Kept kept;

}  // namespace

TEST_CASE("a started run goes on while its rank compiles another plan") {
  on_ranks([](Engine& engine) {
    const int rank = engine.rank(), size = engine.size();
    Executable round = engine.compile(Plan::parse(round_text, "round"), {{"n", elements}});
    std::vector<double> a(static_cast<std::size_t>(elements)), b = a, c = a;
    round.bind("a", a);
    round.bind("b", b);
    round.bind("c", c);
    const auto value = [](int from, std::int64_t run, std::int64_t k) {
      return static_cast<double>(run * 1000 + from * 100000 + k % 977);
    };
    for (std::int64_t run = 0; run < 8; ++run) {
      for (std::int64_t k = 0; k < elements; ++k) a[static_cast<std::size_t>(k)] = value(rank, run, k);
      round.set("shift", run % 3);
      round.start();
      const bool compiles_first = (rank + run) % 2 == 0;
      if (!compiles_first) round.wait();
      Executable another = compile_another(engine, run);
      if (compiles_first) round.wait();
      const auto from = static_cast<int>((rank - 2 - run % 3 + 3 * size) % size);
      for (std::int64_t k = 0; k < elements; ++k)
        claim(b[static_cast<std::size_t>(elements - 1 - k)] == value(from, run, k), "the run has ended well");
      std::vector<std::int64_t> x{rank + run}, y(static_cast<std::size_t>(size));
      another.bind("x", x);
      another.bind("y", y);
      another.run();
      for (int i = 0; i < size; ++i) claim(y[static_cast<std::size_t>(i)] == i + run, "so does the other");
    }
  });
}

TEST_CASE("what a run in flight receives into is the program's again once its executable is destroyed") {
  on_ranks([](Engine& engine) {
    constexpr std::int64_t rows = 16000;  // 384 KB of blocks of 24 bytes
    for (std::int64_t round = 0; round < 12; ++round) {
      PlanBuilder builder("columns-" + std::to_string(round));
      builder.parameter("n", Scalar::i64).buffer("a", Scalar::f64, {"n", "8"}).buffer("b", Scalar::f64, {"n", "8"});
      builder.communicate("columns", "a[:, 0:3]@(rank + 1) % size <<= b[:, 5:8]@rank");
      std::vector<double> a(8 * rows);
      {
        Executable columns = engine.compile(builder.build(), {{"n", rows}});
        columns.bind("a", a);
        columns.bind("b", kept.add(8 * rows, 5));
        columns.run();
        columns.start();
        for (std::int64_t k = 0; k < round % 4; ++k) columns.test();
      }
      std::ranges::fill(a, -1);
      compile_another(engine, round);
      claim(std::ranges::count(a, -1) == std::ssize(a), "nobody writes there any more");
    }
  });
}
