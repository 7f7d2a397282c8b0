// Plans that come and go: what was compiled is found again, and thousands of plans leave nothing behind.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "kplan/kplan.hpp"
#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using tests::claim;

namespace {

Plan shift(int offset) {
  return Plan::parse(fmt::format(
      R"({{"kplan": 1, "name": "shift", "parameters": {{"n": "i64", "mine": {{"type": "i64", "scope": "private"}}}},
    "buffers": {{"a": {{"type": "f64", "shape": ["n"]}}, "b": {{"type": "f32", "shape": ["n + {0}"]}}}},
    "statements": [{{"communicate": "a[k]@(rank + 1) % size <<= b[k + {0}]@rank where k in {{0 ... n - 1}}, k % mine == 0"}}]}})",
      offset));
}

void run_once(Executable& e, int rank, int ranks, int n, int offset, int step = 1) {
  std::vector<double> a(static_cast<std::size_t>(n), -1);
  std::vector<float> b(static_cast<std::size_t>(n + offset));
  for (std::size_t k = 0; k < b.size(); ++k) b[k] = static_cast<float>(100 * rank) + static_cast<float>(k);
  e.bind("a", a);
  e.bind("b", b);
  e.run();
  for (int k = 0; k < n; ++k)
    claim(a[static_cast<std::size_t>(k)] == (k % step == 0 ? 100 * ((rank + ranks - 1) % ranks) + k + offset : -1),
          "a shifted element is wrong");
}

std::size_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (word == "VmRSS:") {
      std::size_t out = 0;
      status >> out;
      return out;
    }
  return 0;
}

std::size_t mapping_count() {
  std::ifstream maps("/proc/self/maps");
  std::size_t out = 0;
  for (std::string line; std::getline(maps, line);) ++out;
  return out;
}

}  // namespace

TEST_CASE("a plan that was compiled before is taken from memory when it is free on every rank") {
  for (const int ranks : {1, 2, 3, 5})
    transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(std::move(transport));
      const auto is_known = [](const Executable& e) { return e.compile_times().size() == 1; };
      for (int round = 0; round < 5; ++round) {
        Executable e = engine.compile(shift(0), {{"n", 9}, {"mine", 1}});
        claim(is_known(e) == (round > 0), "known exactly from the second time on");
        run_once(e, engine.rank(), ranks, 9, 0);
        // One in use: another is made beside it, with channels of its own.
        Executable other = engine.compile(shift(0), {{"n", 9}, {"mine", 1}});
        claim(is_known(other) == (round > 0), "the second of two is known from the second round on");
        run_once(other, engine.rank(), ranks, 9, 0);
        run_once(e, engine.rank(), ranks, 9, 0);
      }
      Executable larger = engine.compile(shift(0), {{"n", 10}, {"mine", 1}});
      claim(!is_known(larger), "another value is another plan");
      run_once(larger, engine.rank(), ranks, 10, 0);
    });
}

TEST_CASE("a plan that one rank knows with other private values is compiled anew on all") {
  transport::run_local(3, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    { Executable e = engine.compile(shift(0), {{"n", 9}, {"mine", 1}}); }
    // Ranks 0 and 1 have compiled just this before, rank 2 has not.
    Executable e = engine.compile(shift(0), {{"n", 9}, {"mine", engine.rank() == 2 ? 2 : 1}});
    claim(e.compile_times().size() > 1, "it cannot be known");
    run_once(e, engine.rank(), 3, 9, 0, engine.rank() == 0 ? 2 : 1);
  });
}

TEST_CASE("varying parameters are at their first values when a plan is taken from memory") {
  const Plan plan =
      Plan::parse(R"json({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": [4]}},
    "statements": [{"communicate": "a[k]@rank <<= n @ rank where k in range(n)"}]})json");
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    for (int round = 0; round < 3; ++round) {
      Executable e = engine.compile(plan, {{"n", 2}});
      std::vector<std::int64_t> a(4, 0);
      e.bind("a", a);
      e.run();
      claim(a == std::vector<std::int64_t>{2, 2, 0, 0}, "the first value is forgotten");
      e.set("n", 3);
      e.run();
      claim(a == std::vector<std::int64_t>{3, 3, 3, 0}, "the new value is not taken");
    }
  });
}

TEST_CASE("a parameter that some ranks have set for no run is at its first value, compared, for the next user") {
  const Plan plan =
      Plan::parse(R"json({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": [1]}}, "statements": [{"communicate": "a[0]@rank <<= n@rank"}]})json");
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    {
      Executable e = engine.compile(plan, {{"n", 2}});
      if (engine.rank() == 1) e.set("n", 3);
    }
    Executable e = engine.compile(plan, {{"n", 2}});
    std::vector<std::int64_t> a(1);
    e.bind("a", a);
    e.run();
    claim(a[0] == 2, "it is the first value");
  });
}

TEST_CASE("what was compiled while runs could do without machine code is not what waits for it") {
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    const auto is_known = [&](Code code) {
      return engine.compile(shift(0), {{"n", 9}, {"mine", 1}}, code).compile_times().size() == 1;
    };
    claim(!is_known(Code::when_ready), "it is new");
    claim(!is_known(Code::before_return), "its code may not be there");
    claim(is_known(Code::when_ready) && is_known(Code::before_return), "both are known");
  });
}

TEST_CASE("ten thousand plans come and go and leave no memory and no mappings behind") {
  // Environment: KPLAN_CHURN, how many. Every plan is another: other sizes, other offsets, other code now and then.
  const char* text = std::getenv("KPLAN_CHURN");
#if defined(KPLAN_SANITIZE_ADDRESS) || defined(KPLAN_SANITIZE_THREAD)
  constexpr bool keeps_what_is_freed = true;  // and so only its own search for leaks says something
#else
  constexpr bool keeps_what_is_freed = false;
#endif
  const int cycles = text ? std::atoi(text) : keeps_what_is_freed ? 1'000 : 10'000, warm_up = cycles / 5;
  std::size_t memory = 0, mappings = 0;
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    for (int k = 0; k < cycles; ++k) {
      if (k == warm_up && engine.rank() == 0) memory = resident_kilobytes(), mappings = mapping_count();
      const int offset = k / 50 % 40;
      Executable e = engine.compile(shift(offset), {{"n", 8 + k}, {"mine", 1}});
      run_once(e, engine.rank(), 2, 8 + k, offset);
    }
    if (engine.rank() != 0 || keeps_what_is_freed) return;
    const std::size_t grown = resident_kilobytes() - std::min(memory, resident_kilobytes());
    // The largest plan's buffers and the allocator's slack; 35 kB a plan would be 280 MB.
    claim(grown < 40'000, fmt::format("resident memory grew by {} kB over {} plans", grown, cycles - warm_up));
    claim(mapping_count() < mappings + 200, fmt::format("{} mappings, {} after warming up", mapping_count(), mappings));
  });
}
