// Runs that are tested until they have ended, and never waited for.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using tests::claim;

namespace {

/// Three phases: each statement sends what the one before brought.
const char* const three_phases = R"json({"kplan": 1, "name": "three-phases", "buffers": {
    "a": {"type": "f64", "shape": [20000]}, "b": {"type": "f64", "shape": [20000]},
    "c": {"type": "f64", "shape": [20000]}, "d": {"type": "f64", "shape": [20000]}},
    "statements": [
      {"communicate": "b@(r + 1) % size <<= a@r where r in world"},
      {"communicate": "c[k]@(r + 1) % size <<= b[19999 - k]@r where r in world, k in range(20000)"},
      {"communicate": "d@r << sum << c@s where r in world, s in world", "fresh": true}]})json";

/// A pattern that only senders know, then one that only receivers know, of what has come.
const char* const told = R"json({"kplan": 1, "name": "told", "parameters":
    {"n": {"type": "i64", "scope": "private", "time": "varying", "default": 0}},
    "buffers": {"a": {"type": "i64", "shape": [8]}, "b": {"type": "i64", "shape": [8]}},
    "statements": [
      {"communicate": "a[k]@(rank + 1) % size <<= 10 * rank + k@rank where k in range(n)"},
      {"communicate": "b[k]@rank <<= a[k]@(rank + 1) % size where k in range(n)", "direction": "pull"}]})json";

const char* const shift = R"json({"kplan": 1, "name": "shift", "buffers": {"a": {"type": "i64", "shape": [4]},
    "b": {"type": "i64", "shape": [4]}}, "statements": [{"name": "s", "communicate": "b@1 <<= a@0"}]})json";

void test_until_over(Executable& x) {
  while (!x.test()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a run of several phases goes through all of them though every rank only tests it") {
  for (const int size : {1, 2, 3, 5})
    tests::on_ranks(size, [=](Engine& engine) {
      Executable x = engine.compile(Plan::parse(three_phases));
      std::vector<double> a(20000), b(a), c(a), d(a);
      x.bind("a", a);
      x.bind("b", b);
      x.bind("c", c);
      x.bind("d", d);
      for (int run = 0; run < 5; ++run) {
        for (std::size_t k = 0; k < a.size(); ++k) a[k] = (engine.rank() + 1) * (run + 1) + static_cast<double>(k % 7);
        x.start();
        test_until_over(x);
        for (std::size_t k = 0; k < a.size(); ++k)
          claim(d[k] == size * (size + 1) / 2 * (run + 1) + size * static_cast<double>((a.size() - 1 - k) % 7),
                "the sum of what all had");
        claim(x.test(), "a run that has ended is over");
        x.wait();
      }
    });
}

TEST_CASE("a run of varying patterns goes from stage to stage though every rank only tests it") {
  for (const int size : {1, 2, 3, 5})
    tests::on_ranks(size, [=](Engine& engine) {
      Executable x = engine.compile(Plan::parse(told));
      std::vector<std::int64_t> a(8), b(8);
      x.bind("a", a);
      x.bind("b", b);
      for (int run = 0; run < 5; ++run) {
        std::ranges::fill(a, -1);
        std::ranges::fill(b, -1);
        const int sent = (engine.rank() + run) % 4;
        x.set("n", sent);
        x.start();
        test_until_over(x);
        for (int k = 0; k < 8; ++k)
          claim(b[static_cast<std::size_t>(k)] == (k < sent ? 10 * engine.rank() + k : -1), "its own values come back");
      }
    });
}

TEST_CASE("test() comes back though a peer has not begun") {
  std::atomic<bool> has_tested = false;
  tests::on_ranks(2, [&](Engine& engine) {
    Executable x = engine.compile(Plan::parse(shift));
    std::vector<std::int64_t> a(4, 7), b(4);
    x.bind("a", a);
    x.bind("b", b);
    claim(x.test(), "without a run started there is nothing left to do");
    if (engine.rank() == 0) {
      while (!has_tested) std::this_thread::yield();
      return x.run();
    }
    x.start();
    claim(!x.test() && !x.test(), "nothing has come");
    has_tested = true;
    x.wait();  // tested first, waited for then
    claim(b == a, "it has come");
  });
}

TEST_CASE("runs that were started go on while another one is tested") {
  tests::on_ranks(2, [](Engine& engine) {
    const auto compiled = [&](std::vector<std::vector<double>>& memory) {
      Executable out = engine.compile(Plan::parse(three_phases));
      for (std::size_t k = 0; k < 4; ++k) out.bind(std::string(1, "abcd"[k]), memory[k]);
      return out;
    };
    std::vector<std::vector<double>> first(4, std::vector<double>(20000, 1)), second(first);
    Executable x = compiled(first), y = compiled(second);
    x.start();
    y.start();
    for (Executable* each : engine.rank() == 0 ? std::vector{&x, &y} : std::vector{&y, &x}) test_until_over(*each);
    claim(first[3][0] == 2 && second[3][0] == 2, "both have come");
  });
}

TEST_CASE("a zero divisor is thrown by test() when the run has ended, and others follow") {
  tests::on_ranks(2, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(R"json({"kplan": 1, "name": "divided", "buffers":
      {"a": {"type": "i64", "shape": [2]}, "b": {"type": "i64", "shape": [2]}},
      "statements": [{"communicate": "b[0]@(r + 1) % size <<= a[0] / a[1]@r where r in world"}]})json"));
    std::vector<std::int64_t> a{6, 0}, b{0, 0};
    x.bind("a", a);
    x.bind("b", b);
    x.start();
    claim(tests::error_of([&] { test_until_over(x); }).ends_with("[KP-R001]"), "it was told");
    a[1] = 2;
    x.start();
    test_until_over(x);
    claim(b[0] == 3, "the next run is right");
  });
}

TEST_CASE("a run is over when test() or wait() has thrown that a peer has ended") {
  for (const bool is_tested : {false, true})
    tests::on_ranks(2, [=](Engine& engine) {
      Executable x = engine.compile(Plan::parse(shift));
      std::vector<std::int64_t> a(4), b(4);
      x.bind("a", a);
      x.bind("b", b);
      if (engine.rank() == 0) return;
      x.start();
      const std::string error = tests::error_of([&] { is_tested ? test_until_over(x) : x.wait(); });
      claim(error ==
                "plan shift, statement s: rank 1 waits for 32 bytes from rank 0; rank 0 has ended in run 0 [KP-T002]",
            error);
      claim(x.test(), "it is over");
      x.wait();
      claim(tests::error_of([&] { x.start(); }).ends_with("[KP-T011]"), "no other follows");
    });
}
