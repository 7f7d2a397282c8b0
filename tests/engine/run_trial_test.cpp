// Which of two ways runs go, by what they took.
#include "engine/runtime/run_trial.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>

using namespace std::chrono_literals;
using kplan::RunTrial;
using kplan::RunTrials;
using kplan::RunWay;

namespace {

/// Runs that take so long; how many of them went the first way.
struct Runs {
  RunTrial trial{0, 1, false};
  std::uint64_t next = 0;
  RunTrial::Time now{};

  int make(std::uint64_t count, std::chrono::nanoseconds first, std::chrono::nanoseconds other) {
    int out = 0;
    for (const std::uint64_t end = next + count; next < end; ++next) {
      const bool is_first = trial.begin(next, now);
      now += is_first ? first : other;
      trial.end(now);
      if (is_first) ++out;
    }
    return out;
  }
};

}  // namespace

TEST_CASE("runs go the first way where they are shorter then, and both ways are tried again") {
  Runs runs;
  CHECK(runs.make(16, 10us, 14us) == 8);
  CHECK(runs.make(48, 10us, 14us) == 48);
  // The second trial comes soon: in the first one memory and slots were new.
  CHECK(runs.make(16, 10us, 14us) == 8);
  CHECK(runs.make(48, 10us, 14us) == 48);
  // It has become slower: one trial may have been disturbed, two in turn say so.
  CHECK(runs.make(128, 18us, 14us) == 8 + 112);
  CHECK(runs.make(128, 18us, 14us) == 8);
  // Hardly faster, or slower, is not enough to change.
  CHECK(runs.make(128, 13600ns, 14us) == 8);
  CHECK(runs.make(128, 13us, 14us) == 8 + 112);
  CHECK(runs.make(256, 14us, 13600ns) == 2 * (8 + 112));
  // Later trials are seldom.
  CHECK(runs.make(128, 10us, 14us) == 8 + 112);
  CHECK(runs.make(1024, 10us, 14us) == 8 + 1008);
  CHECK(runs.make(1024, 18us, 14us) == 8 + 1008);
  CHECK(runs.make(1024, 18us, 14us) == 8);
}

TEST_CASE("a way must be as much shorter as it is asked to be") {
  Runs runs{.trial = RunTrial(0, 0.8, false)};
  CHECK(runs.make(64, 16us, 20us) == 8);
  CHECK(runs.make(64, 15us, 20us) == 8 + 48);
  CHECK(runs.make(128, 16us, 20us) == 8 + 112);
}

TEST_CASE("a way that two runs in turn find far slower is given up") {
  Runs runs;
  runs.make(64, 10us, 14us);
  CHECK(runs.make(16, 10us, 20us) == 8 + 4);
  CHECK(runs.make(48, 10us, 20us) == 48);
  // The first way the same, at its third and fourth run, after which there is no other.
  CHECK(runs.make(128, 18us, 14us) == 8 + 112);
  CHECK(runs.make(128, 18us, 14us) == 8);
  CHECK(runs.make(128, 30us, 14us) == 4);
  // So it is in a first trial that no run came before.
  Runs kept{.trial = RunTrial(0, 1, true)};
  CHECK(kept.make(16, 10us, 20us) == 8 + 4);
  // One is not enough.
  Runs others;
  others.make(64, 10us, 14us);
  others.make(11, 10us, 14us);
  others.make(1, 10us, 90us);
  CHECK(others.make(4, 10us, 14us) == 0);
}

TEST_CASE("a trial in which some runs were not timed changes nothing") {
  Runs runs;
  for (int k = 0; k < 2; ++k) {
    runs.make(12, 10us, 20us);
    runs.next += 4;  // started, not run
    CHECK(runs.make(48, 10us, 20us) == 0);
  }
  runs.next += 6;  // in the next trial's first way
  CHECK(runs.make(122, 10us, 20us) == 2);
  CHECK(runs.make(128, 10us, 20us) == 8 + 112);
}

TEST_CASE("single slow runs do not count") {
  Runs runs;
  runs.make(4, 10us, 14us);
  runs.make(2, 900us, 14us);
  CHECK(runs.make(122, 10us, 14us) == 2 + 48 + 8 + 48);
}

TEST_CASE("runs that are disturbed do not count while two of a trial are not") {
  Runs runs;
  runs.make(3, 8us, 10us);
  runs.make(3, 12us, 10us);
  runs.make(2, 8us, 10us);
  CHECK(runs.make(56, 8us, 10us) == 48);
  // The other way round, in two trials: the better one counts.
  for (int k = 0; k < 2; ++k) {
    runs.make(11, 10us, 8us);
    runs.make(3, 10us, 12us);
    runs.make(2, 10us, 8us);
    CHECK(runs.make(k == 0 ? 48 : 112, 10us, 8us) == (k == 0 ? 48 : 0));
  }
}

TEST_CASE("trials of several questions do not meet") {
  RunTrials trials(0);
  CHECK_FALSE(trials.are_asked());
  const auto ways = {RunWay::fetched, RunWay::in_pieces, RunWay::through_caches, RunWay::in_place};
  for (const RunWay way : ways) trials.ask(way, 1, false);
  CHECK(trials.are_asked());
  const RunTrial::Time now{};
  for (std::uint64_t run = 0; run < 4096; ++run) {
    // Nothing takes any time, so outside of trials the first way is never taken.
    trials.begin(run, now, /*may_wait=*/true);
    CHECK(std::ranges::count_if(ways, [&](RunWay way) { return trials.goes(way); }) <= 1);
    trials.end(now);
  }
}

TEST_CASE("a rank goes the way in which the messages of the lowest rank below it come") {
  RunTrials trials(2);
  for (const RunWay way : {RunWay::fetched, RunWay::in_pieces}) trials.ask(way, 1, false);
  std::uint64_t run = 0;
  const auto goes = [&](RunWay way) {
    trials.begin(run++, {}, /*may_wait=*/true);
    trials.end({});
    return trials.goes(way);
  };
  trials.note_came(RunWay::fetched, 3, true);  // that one follows this rank
  CHECK_FALSE(goes(RunWay::fetched));
  trials.note_came(RunWay::fetched, 1, true);
  CHECK(goes(RunWay::fetched));
  CHECK_FALSE(goes(RunWay::in_pieces));
  trials.note_came(RunWay::fetched, 0, false);
  trials.note_came(RunWay::fetched, 1, true);
  CHECK_FALSE(goes(RunWay::fetched));
  trials.note_came(RunWay::fetched, 0, true);
  // It tries nothing of its own any more.
  for (int k = 0; k < 200; ++k) CHECK(goes(RunWay::fetched));
  trials.begin(run, {}, /*may_wait=*/false);
  CHECK_FALSE(trials.goes(RunWay::fetched));
}

TEST_CASE("runs go no way that is not asked about, nor one that needs a wait where there is none") {
  RunTrials trials(0);
  for (const RunWay way : {RunWay::fetched, RunWay::in_place}) trials.ask(way, 1, true);
  for (const bool may_wait : {false, true}) {
    trials.begin(0, {}, may_wait);
    CHECK(trials.goes(RunWay::fetched) == may_wait);
    CHECK(trials.goes(RunWay::in_place));
    CHECK_FALSE(trials.goes(RunWay::in_pieces));
    CHECK_FALSE(trials.goes(RunWay::through_caches));
    trials.end({});
  }
}

TEST_CASE("what a program does between start and wait does not count") {
  RunTrial trial(0, 1, false);
  RunTrial::Time now{};
  for (std::uint64_t run = 0; run < RunTrial::runs; ++run) {
    const bool is_first = trial.begin(run, now);
    now += is_first ? 10us : 20us;
    trial.leave(now);
    now += is_first ? 900us : 1us;
    trial.come_back(now);
    now += 5us;
    trial.end(now);
  }
  CHECK(trial.begin(RunTrial::runs, now));
}

TEST_CASE("a run that ends without having begun changes nothing") {
  Runs runs;
  runs.make(1025 + RunTrial::runs, 10us, 20us);
  for (int k = 0; k < 100; ++k) {
    runs.now += 900us;
    runs.trial.end(runs.now);
  }
  // Had they counted as slow ones, the next trial would come soon.
  CHECK(runs.make(1023 - RunTrial::runs, 10us, 20us) == 1023 - RunTrial::runs);
}

TEST_CASE("before the first trial runs go the way that is likely to be faster") {
  for (const bool is_likely : {false, true}) {
    RunTrial trial(RunTrial::runs, 1, is_likely);
    for (std::uint64_t run = 0; run < RunTrial::runs; ++run) CHECK(trial.begin(run, {}) == is_likely);
    CHECK(trial.begin(RunTrial::runs, {}));
  }
}

TEST_CASE("a first way that was given up is tried again less often") {
  Runs runs;
  CHECK(runs.make(512, 50us, 20us) == 8 + 4);
  CHECK(runs.make(512, 28us, 20us) == 8 + 3 * 8);
  CHECK(runs.make(1024, 50us, 20us) == 4);
  CHECK(runs.make(2048, 50us, 20us) == 0);
  CHECK(runs.make(1024, 10us, 20us) == 8 + 1008);
}

TEST_CASE("where runs become much slower than in the last trial, the next one comes soon and forgets what was before") {
  Runs runs;
  CHECK(runs.make(1024, 10us, 12us) == 1024 - 9 * 8);
  CHECK(runs.make(16, 10us, 12us) == 8);
  // One fewer than it takes.
  CHECK(runs.make(15, 16us, 12us) == 15);
  CHECK(runs.make(97, 10us, 12us) == 97);
  CHECK(runs.make(128, 16us, 14us) == 128);
  CHECK(runs.make(128, 16us, 14us) == 8);
  // The new times are the usual ones now.
  CHECK(runs.make(1024 - 384, 16us, 14us) == 0);
  CHECK(runs.make(1024, 16us, 14us) == 8);
}
