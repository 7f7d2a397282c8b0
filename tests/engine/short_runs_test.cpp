// Runs of short messages, which go a way of their own from the second run on.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "tests/engine/on_ranks.hpp"
#include "tests/variable.hpp"

using namespace kplan;
using tests::claim;

namespace {

/// Three phases: a plane that a parameter chooses; what is put together in the order of senders, with this rank's own;
/// and a part of that. Nothing is sent from where it lies: ranks that are threads lend that.
const char* const three_phases = R"json({"kplan": 1, "name": "three-phases", "parameters":
    {"t": {"type": "i64", "time": "varying", "default": 0}, "factor": {"type": "i64", "time": "varying", "default": 1}},
    "buffers": {"u": {"type": "i64", "shape": [3, 4]}, "next": {"type": "i64", "shape": [4]},
                "total": {"type": "i64", "shape": [4]}, "first": {"type": "i64", "shape": [2]}},
    "operators": {"then": {"expression": "left * 10 + right", "associative": false, "commutative": false}},
    "statements": [
      {"communicate": "next[k]@(r + 1) % size <<= factor * u[t, k]@r where r in world, k in range(4)"},
      {"communicate": "total[k]@(r + d) % size << then << next[3 - k]@r where r in world, d in {0, 1}, k in range(4)",
       "fresh": true},
      {"communicate": "first[k]@(r + 1) % size <<= total[1 - k]@r where r in world, k in range(2)"}]})json";

struct Phases {
  std::vector<std::int64_t> u, next, total, first;

  Phases(const Engine& engine, int salt)
      : u(12), next(4), total(4), first(2), rank_(engine.rank()), size_(engine.size()), salt_(salt) {
    for (std::size_t k = 0; k < u.size(); ++k) u[k] = value(rank_, k);
  }
  void bind_to(Executable& x) {
    x.bind("u", u);
    x.bind("next", next);
    x.bind("total", total);
    x.bind("first", first);
  }
  bool is_right(std::int64_t t, std::int64_t factor) const {
    const auto next_of = [&](int rank, std::size_t k) {
      return factor * value(before(rank), static_cast<std::size_t>(4 * t) + k);
    };
    const auto total_of = [&](int rank, std::size_t k) {
      const auto [low, high] = std::minmax({rank, before(rank)});
      return next_of(low, 3 - k) * 10 + next_of(high, 3 - k);
    };
    for (std::size_t k = 0; k < 4; ++k)
      if (next[k] != next_of(rank_, k) || total[k] != total_of(rank_, k)) return false;
    return first[0] == total_of(before(rank_), 1) && first[1] == total_of(before(rank_), 0);
  }

 private:
  int before(int rank) const { return (rank + size_ - 1) % size_; }
  std::int64_t value(int rank, std::size_t k) const { return 100 * rank + static_cast<std::int64_t>(k) + 1000 * salt_; }
  int rank_, size_, salt_;
};

/// Ranks send their elements to rank 0, which puts them together in their order.
const char* const applied_in_order =
    R"json({"kplan": 1, "name": "in-order", "buffers": {"a": {"type": "i64", "shape": [1]},
    "b": {"type": "i64", "shape": [1]}},
    "operators": {"then": {"expression": "left * 10 + right", "associative": false, "commutative": false}},
    "statements": [{"communicate": "b[0]@0 << then << a[0]@r where r in world", "fresh": true}]})json";

/// Run number `run`, which may be begun, tested and waited for apart.
void run_some_way(Executable& x, int run) {
  if (run % 4 == 0) return x.run();
  x.start();
  if (run % 4 == 1) (void)x.test();
  while (run % 4 == 2 && !x.test()) std::this_thread::yield();
  x.wait();
}

void be_late() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

}  // namespace

TEST_CASE("short runs do what first ones do, whatever is new and whoever is late") {
  for (const int size : {1, 2, 3})
    tests::on_ranks(size, [=](Engine& engine) {
      Executable x = engine.compile(Plan::parse(three_phases));
      std::vector<Phases> memory{{engine, 0}, {engine, 1}};
      std::int64_t t = 0, factor = 1;
      std::size_t bound = 0;
      memory[0].bind_to(x);
      for (int run = 0; run < 60; ++run) {
        if (run % 7 == 3) x.set("t", t = run % 3);
        if (run % 11 == 5) x.set("factor", factor = run);
        if (run % 13 == 8) memory[bound = 1 - bound].bind_to(x);
        if (run % size == engine.rank() && run % 5 == 2) be_late();
        run_some_way(x, run % 17 == 10 ? run : 0);
        claim(memory[bound].is_right(t, factor), "all phases of run " + std::to_string(run));
      }
    });
}

TEST_CASE("what short runs put together in the order of senders waits for the first of them") {
  tests::on_ranks(3, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(applied_in_order));
    std::vector<std::int64_t> a(1), b(1);
    x.bind("a", a);
    x.bind("b", b);
    for (int run = 0; run < 30; ++run) {
      a[0] = (engine.rank() + run) % 10;
      if (engine.rank() == run % 3) be_late();
      run_some_way(x, run + engine.rank());
      if (engine.rank() == 0)
        claim(b[0] == run % 10 * 100 + (run + 1) % 10 * 10 + (run + 2) % 10, "in the order of ranks");
    }
  });
}

TEST_CASE("a zero divisor in a short run is thrown at its end, and others follow") {
  tests::on_ranks(2, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(R"json({"kplan": 1, "name": "divided", "buffers":
      {"a": {"type": "i64", "shape": [2]}, "b": {"type": "i64", "shape": [2]}},
      "statements": [{"communicate": "b[0]@(r + 1) % size <<= a[0] / a[1]@r where r in world"}]})json"));
    std::vector<std::int64_t> a{6, 0}, b{0, 0};
    x.bind("a", a);
    x.bind("b", b);
    for (int run = 0; run < 24; ++run) {
      a = {6 * run, run % 3};
      const std::string error = tests::error_of([&] { run_some_way(x, run / 3); });
      const std::string told = ", run " + std::to_string(run) + " when r = " + std::to_string(engine.rank());
      claim(run % 3 == 0 ? error.ends_with(told + " [KP-R001]") : error.empty(), "as its divisor is: " + error);
      claim(run % 3 == 0 || b[0] == 6 * run / (run % 3), "what has come");
    }
  });
}

TEST_CASE("an index outside leaves nothing behind in a short run, and values that differ are found") {
  for (const int size : {1, 2})
    tests::on_ranks(size, [=](Engine& engine) {
      Executable x = engine.compile(Plan::parse(three_phases));
      Phases memory(engine, 0);
      memory.bind_to(x);
      for (int run = 0; run < 3; ++run) x.run();
      for (int turn = 0; turn < 3; ++turn) {
        const std::vector<std::int64_t> next = memory.next, total = memory.total;
        x.set("t", 3);
        claim(tests::error_of([&] { x.run(); }).find("is outside the 3") != std::string::npos, "there is no plane 3");
        claim(memory.next == next && memory.total == total, "nothing was written");
        x.set("t", turn);
        for (int run = 0; run < 3; ++run) {
          x.run();
          claim(memory.is_right(turn, 1), "there is that plane");
        }
      }
      if (size == 1) return;
      x.set("factor", engine.rank());
      claim(tests::error_of([&] { x.run(); }).find("[KP-A002]") != std::string::npos, "the factors differ");
      claim(tests::error_of([&] { x.run(); }).find("[KP-T011]") != std::string::npos, "it cannot be used any more");
    });
}

TEST_CASE("a short run that waits for nobody takes its memory back after an index outside") {
  tests::on_ranks(1, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(R"json({"kplan": 1, "name": "planes",
      "parameters": {"t": {"type": "i64", "time": "varying", "default": 0}},
      "buffers": {"a": {"type": "i64", "shape": [3, 2]}, "b": {"type": "i64", "shape": [2]}},
      "statements": [{"communicate": "b[k]@0 <<= a[t, 1 - k]@0 where k in range(2)"}]})json"));
    std::vector<std::int64_t> a{1, 2, 3, 4, 5, 6}, b(2);
    x.bind("a", a);
    x.bind("b", b);
    for (int run = 0; run < 12; ++run) {
      const int t = run % 4;
      x.set("t", t);
      const std::vector<std::int64_t> before = b;
      const std::string error = tests::error_of([&] { run_some_way(x, run / 3); });
      claim(error.empty() == (t < 3), "there are three planes: " + error);
      claim(b == (t < 3 ? std::vector<std::int64_t>{2 * t + 2, 2 * t + 1} : before), "the plane of this run, or none");
    }
  });
}

TEST_CASE("a short run that was begun is one that goes on") {
  tests::on_ranks(1, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(applied_in_order));
    std::vector<std::int64_t> a(1), b(1);
    x.bind("a", a);
    x.bind("b", b);
    for (int run = 0; run < 3; ++run) {
      x.start();
      claim(tests::error_of([&] { x.run(); }).find("[KP-R010]") != std::string::npos, "it is started twice");
      claim(tests::error_of([&] { x.bind("a", a); }).find("[KP-B023]") != std::string::npos, "it reads a");
      x.wait();
      x.wait();
    }
  });
}

TEST_CASE("short messages may be lent") {
  const tests::Variable lend_bytes("KPLAN_LEND_BYTES", "1");
  tests::on_ranks(2, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(R"json({"kplan": 1, "name": "lent", "buffers":
      {"a": {"type": "i64", "shape": [100]}, "b": {"type": "i64", "shape": [100]}},
      "statements": [{"communicate": "b[k]@1 <<= a[99 - k]@0 where k in range(100)"}]})json"));
    std::vector<std::int64_t> a(100), b(100);
    x.bind_bytes("a", std::as_writable_bytes(std::span(a)), Written::seldom);
    x.bind("b", b);
    for (int run = 0; run < 20; ++run) {
      for (std::size_t k = 0; k < a.size(); ++k) a[k] = run + static_cast<std::int64_t>(k);
      run_some_way(x, run);
      for (std::size_t k = 0; k < b.size() && engine.rank() == 1; ++k) claim(b[k] == a[99 - k], "the elements");
    }
  });
}
