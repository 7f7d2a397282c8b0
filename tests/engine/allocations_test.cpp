// What runs, and binding anew between them, allocate on the rank's own thread: nothing, after the first few.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;

// Sanitizers have their own operator new.
#if !defined(KPLAN_SANITIZE_ADDRESS) && !defined(KPLAN_SANITIZE_THREAD)
namespace {
thread_local std::size_t allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* out = std::malloc(bytes)) return out;
  throw std::bad_alloc();
}
// Inlined without the other, they would seem mismatched to g++.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a run allocates nothing, also where buffers were bound anew or its rows are asked for") {
  const Plan plans[] = {Plan::parse(R"json({"kplan": 1, "name": "halo", "buffers": {
        "a": {"type": "f64", "shape": [1000]}, "b": {"type": "f64", "shape": [1000]}},
        "statements": [{"communicate": "a[k]@(rank + 1) % size <<= b[999 - k]@rank where k in range(1000)"}]})json"),
                        Plan::parse(R"json({"kplan": 1, "name": "ghosts", "buffers": {
        "a": {"type": "f64", "shape": [1000]}, "b": {"type": "f64", "shape": [1000]},
        "owner": {"type": "i64", "shape": [100], "time": "varying"}},
        "statements": [{"communicate": "a[k]@rank <<= b[k]@o where k in range(100), o = owner[k]",
                        "direction": "pull"}]})json")};
  for (const Plan& plan : plans)
    for (const int ranks : {1, 2, 3})
      tests::on_ranks(ranks, [&](Engine& engine) {
        Executable x = engine.compile(plan, {}, Code::before_return);
        std::vector<double> a(1000), b(1000), c(1000);
        std::vector<std::int64_t> owner(100);
        for (std::size_t k = 0; k < owner.size(); ++k) owner[k] = static_cast<std::int64_t>(k) % engine.size();
        x.bind("a", a);
        if (plan.name() == "ghosts") x.bind("owner", owner);
        // A rank that was later than ever before may cost another some memory once.
        std::size_t fewest = SIZE_MAX;
        for (int round = 0; round < 10; ++round) {
          const std::size_t before = allocations;
          for (std::vector<double>* bound : {&b, &c}) {
            x.bind("b", *bound);
            x.run();
          }
          fewest = std::min(fewest, allocations - before);
        }
        tests::claim(fewest == 0, plan.name() + " on " + std::to_string(ranks) + " ranks: " + std::to_string(fewest) +
                                      " allocations in two runs");
      });
}
#endif
