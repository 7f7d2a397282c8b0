// Environment: KPLAN_SEED (default fixed), KPLAN_PLANS (how many), KPLAN_SECONDS (go on for that long instead).
#include "random_plan.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <map>

#include "tests/number_from_environment.hpp"

using namespace kplan::test;

TEST_CASE("random plans leave the same bits as the reference interpreter", "[random]") {
  const std::uint64_t seed = number_from_environment("KPLAN_SEED", 20261121),
                      plans = number_from_environment("KPLAN_PLANS", 4000),
                      seconds = number_from_environment("KPLAN_SECONDS", 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::map<Outcome::Kind, int> counts;
  std::map<std::string, int> codes;    ///< of plans that fail on both sides
  std::map<std::string, int> classes;  ///< of statements in plans that run
  for (std::uint64_t k = 0; seconds > 0 ? std::chrono::steady_clock::now() < end : k < plans; ++k) {
    std::mt19937_64 random(seed + k);
    const RandomPlan plan = draw_plan(random);
    const Outcome outcome = compare_with_reference(plan);
    ++counts[outcome.kind];
    if (outcome.kind == Outcome::Kind::identical)
      for (const std::string& c : outcome.classes) ++classes[c];
    if (outcome.kind == Outcome::Kind::both_failed) {
      const std::size_t code = outcome.what.find("[KP-");
      if (code != std::string::npos) ++codes[outcome.what.substr(code, 9)];
    }
    if (outcome.kind != Outcome::Kind::different) continue;
    const RandomPlan small =
        shrunk(plan, [](const RandomPlan& p) { return compare_with_reference(p).kind == Outcome::Kind::different; });
    FAIL(fmt::format("seed {}: {}\nshrunk to {} ranks, data seed {}:\n{}\n{}", seed + k, outcome.what, small.ranks,
                     small.data_seed, small.to_json(), compare_with_reference(small).what));
  }
  std::string errors;
  for (const auto& [code, count] : codes) errors += fmt::format(" {} {}", code, count);
  std::string drawn;
  for (const auto& [name, count] : classes) drawn += fmt::format("\n  {:6} {}", count, name);
  WARN(fmt::format("random plans: {} identical, {} failed on both sides;{}\nstatements run:{}",
                   counts[Outcome::Kind::identical], counts[Outcome::Kind::both_failed], errors, drawn));
  // The drawing must not drift into plans that prove nothing.
  CHECK(2 * counts[Outcome::Kind::identical] > counts[Outcome::Kind::both_failed]);
  if (seconds > 60 || plans >= 2000) CHECK(classes["global, varying, on planes"] > 0);
  for (const char* knowledge : {"global", "corresponding", "sender", "receiver"})
    for (const char* time : {"", ", on planes", ", varying"})
      for (const char* group : {"", ", in a group"}) {
        INFO(knowledge << time << group);
        const bool is_rare = *group && std::string(time) == ", on planes";
        if (!is_rare && (seconds > 60 || plans >= 2000))
          CHECK(classes[fmt::format("{}{}{}", knowledge, time, group)] > 0);
      }
}
