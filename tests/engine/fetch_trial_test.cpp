// Which way long messages of one region go, by what runs took.
#include "engine/runtime/fetch_trial.hpp"

#include <catch2/catch.hpp>
#include <cstdint>

using namespace std::chrono_literals;
using kplan::FetchTrial;

namespace {

/// Runs that take so long; how many of them fetched.
struct Runs {
  FetchTrial trial;
  std::uint64_t next = 0;
  FetchTrial::Time now{};

  int make(std::uint64_t count, std::chrono::nanoseconds fetching, std::chrono::nanoseconds otherwise) {
    int out = 0;
    for (const std::uint64_t end = next + count; next < end; ++next) {
      const bool fetches = trial.begin(next, now);
      now += fetches ? fetching : otherwise;
      trial.end(now);
      if (fetches) ++out;
    }
    return out;
  }
};

}  // namespace

TEST_CASE("messages are fetched where runs are shorter then, and both ways are tried again") {
  Runs runs;
  CHECK(runs.make(16, 10us, 20us) == 8);
  CHECK(runs.make(112, 10us, 20us) == 112);
  // It has become slower.
  CHECK(runs.make(16, 30us, 20us) == 8);
  CHECK(runs.make(112, 30us, 20us) == 0);
  // Hardly faster is not enough.
  CHECK(runs.make(128, 98us, 100us) == 8);
  CHECK(runs.make(128, 90us, 100us) == 8 + 112);
  // Later trials are seldom.
  CHECK(runs.make(512, 10us, 20us) == 4 * (8 + 112));
  CHECK(runs.make(1024, 10us, 20us) == 8 + 1008);
  CHECK(runs.make(1024, 30us, 20us) == 8);
}

TEST_CASE("a trial in which some runs were not timed changes nothing") {
  Runs runs;
  runs.make(12, 10us, 20us);
  runs.next += 4;  // started, not run
  CHECK(runs.make(112, 10us, 20us) == 0);
  runs.next += 6;  // in the next trial's first way
  CHECK(runs.make(122, 10us, 20us) == 2);
  CHECK(runs.make(128, 10us, 20us) == 8 + 112);
}

TEST_CASE("single slow runs do not count") {
  Runs runs;
  runs.make(4, 10us, 20us);
  runs.make(2, 900us, 20us);
  CHECK(runs.make(122, 10us, 20us) == 2 + 112);
}
