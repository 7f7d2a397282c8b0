// What an engine says of the environment, whether or not its ranks need the variable.
#include <catch2/catch.hpp>

#include "tests/engine/on_ranks.hpp"
#include "tests/variable.hpp"

using namespace kplan;

namespace {

/// What an engine of one rank says when it is made; empty: nothing.
std::string said_with(const char* name, const char* value) {
  const tests::Variable variable(name, value);
  return tests::error_of([] { tests::on_ranks(1, [](Engine&) {}); });
}

}  // namespace

TEST_CASE("an engine refuses what it cannot read in any variable of kplan") {
  const std::tuple<const char*, const char*, const char*> wrong[] = {
      {"KPLAN_TIMEOUT", "never", "[KP-E001]"},       {"KPLAN_NODE", "yes", "[KP-E004]"},
      {"KPLAN_OFI_ONE_SIDED", "maybe", "[KP-E006]"}, {"KPLAN_FETCH_BYTES", "x", "[KP-E007]"},
      {"KPLAN_COLLECTIVES", "mpi", "[KP-E008]"},     {"KPLAN_CACHE", "no", "[KP-E011]"},
      {"KPLAN_CACHE_LIMIT", "abc", "[KP-E011]"},     {"KPLAN_CACHE_LIMIT", "-5", "[KP-E011]"},
      {"KPLAN_CACHE_LIMIT", "0", "[KP-E011]"},       {"KPLAN_PLUGIN", "/nowhere/plugin.so", "[KP-E012]"},
      {"KPLAN_PLUGIN", "/dev/null", "[KP-E012]"},    {"KPLAN_PLUGIN", "/", "[KP-E012]"},
      {"KPLAN_PLUGIN", __FILE__, "[KP-E012]"}};
  for (const auto& [name, value, code] : wrong) {
    CAPTURE(name, value);
    CHECK_THAT(said_with(name, value),
               Catch::Contains(std::string(name) + " is `" + value + "`") && Catch::EndsWith(code));
  }
}

TEST_CASE("an engine accepts what its documents name") {
  for (const auto& [name, value] : {std::pair{"KPLAN_TIMEOUT", "off"},
                                    {"KPLAN_CACHE", "off"},
                                    {"KPLAN_CACHE", "on"},
                                    {"KPLAN_CACHE", ""},
                                    {"KPLAN_CACHE_LIMIT", "1"},
                                    {"KPLAN_PLUGIN", ""}}) {
    CAPTURE(name, value);
    CHECK(said_with(name, value).empty());
  }
}

TEST_CASE("a name that is another with a slip in it is refused, others are left alone") {
  for (const auto& [wrong, right] : {std::pair{"KPLAN_TIMOUT", "KPLAN_TIMEOUT"},
                                     {"KPLAN_TIMEOUTS", "KPLAN_TIMEOUT"},
                                     {"KPLAN_NDOE", "KPLAN_NODE"},
                                     {"KPLAN_PIECE-BYTES", "KPLAN_PIECE_BYTES"}}) {
    CAPTURE(wrong);
    CHECK_THAT(said_with(wrong, "1"),
               Catch::Contains(std::string(wrong) + " (did you mean " + right + "?)") && Catch::EndsWith("[KP-E013]"));
  }
  for (const char* other : {"KPLAN_RUNS", "KPLAN_PLANS", "KPLAN_HOME", "KPLAN_", "KPLANTIMEOUT"}) {
    CAPTURE(other);
    CHECK(said_with(other, "1").empty());
  }
}
