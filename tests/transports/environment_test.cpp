// What the environment sets, and what a build without MPI answers.
#include "transports/environment.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "kplan/transport.hpp"
#include "tests/variable.hpp"

using namespace std::chrono_literals;
using kplan::tests::Variable;
using kplan::transport::timeout_from_environment;

TEST_CASE("waits last 60 s unless KPLAN_TIMEOUT says otherwise") {
  unsetenv("KPLAN_TIMEOUT");
  CHECK(timeout_from_environment() == 60s);
  CHECK((Variable("KPLAN_TIMEOUT", "5"), timeout_from_environment()) == 5s);
  CHECK((Variable("KPLAN_TIMEOUT", "0.25"), timeout_from_environment()) == 250ms);
  CHECK((Variable("KPLAN_TIMEOUT", "1000000000"), timeout_from_environment()) == 1000000000s);
  CHECK((Variable("KPLAN_TIMEOUT", "off"), timeout_from_environment()) == 1000000000s);
}

TEST_CASE("a KPLAN_TIMEOUT that is no number of seconds above 0 is refused and quoted") {
  for (const char* value : {"", " 5", "5 ", "5s", "0", "0.0", "-1", "+1", "1e3", "nan", "inf", "0x10", "1,5",
                            "1000000001", "99999999999999999999", "0.0000000000001"}) {
    const Variable variable("KPLAN_TIMEOUT", value);
    CAPTURE(value);
    CHECK_THROWS_AS(timeout_from_environment(), kplan::PlanError);
    CHECK_THROWS_WITH(timeout_from_environment(),
                      Catch::Contains("KPLAN_TIMEOUT is `" + std::string(value) + "`") && Catch::Contains("[KP-E001]"));
  }
}

TEST_CASE("numbers of bytes are decimal numbers up to 2^30, and 0 for never") {
  using namespace kplan::transport;
  const std::pair<const char*, std::size_t (*)()> numbers[] = {
      {"KPLAN_PIECE_BYTES", piece_bytes_from_environment},
      {"KPLAN_NON_TEMPORAL_BYTES", non_temporal_bytes_from_environment},
      {"KPLAN_PAST_CACHES_BYTES", [] { return past_caches_from_environment().least_bytes; }},
      {"KPLAN_LEND_BYTES", lend_bytes_from_environment},
      {"KPLAN_LEND_SPREAD", lend_spread_from_environment},
      {"KPLAN_FETCH_BYTES", fetch_bytes_from_environment},
      {"KPLAN_PLACE_BYTES", place_bytes_from_environment},
      {"KPLAN_PLACE_BLOCK_BYTES", place_block_bytes_from_environment},
      {"KPLAN_AHEAD_BYTES", [] { return going_ahead_from_environment().bytes; }}};
  for (const auto& [name, read] : numbers) {
    CHECK((Variable(name, "0"), read()) == 0);
    CHECK((Variable(name, "77"), read()) == 77);
    CHECK((Variable(name, "1073741824"), read()) == 1073741824);
    for (const char* value : {"", "-1", " 5", "5k", "1.5", "0x10", "1073741825", "99999999999999999999"}) {
      const Variable variable(name, value);
      CAPTURE(name, value);
      CHECK_THROWS_AS(read(), kplan::PlanError);
      CHECK_THROWS_WITH(read(),
                        Catch::Contains(std::string(name) + " is `" + value + "`") && Catch::Contains("[KP-E007]"));
    }
  }
}

TEST_CASE("how long a line takes from a far core is a number of nanoseconds") {
  using namespace kplan::transport;
  const char* const name = "KPLAN_FAR_NS";
  CHECK((Variable(name, "0"), far_from_environment()) == 0ns);
  CHECK((Variable(name, "200"), far_from_environment()) == 200ns);
  const Variable variable(name, "fast");
  CHECK_THROWS_WITH(far_from_environment(), Catch::Contains("KPLAN_FAR_NS is `fast`") && Catch::Contains("[KP-E007]"));
}

TEST_CASE("the transport's collective operations are used by themselves, always or never") {
  using namespace kplan::transport;
  const char* const name = "KPLAN_COLLECTIVES";
  CHECK((Variable(name, "auto"), native_collectives_from_environment()) == NativeCollectives::where_faster);
  CHECK((Variable(name, "native"), native_collectives_from_environment()) == NativeCollectives::wherever_possible);
  CHECK((Variable(name, "off"), native_collectives_from_environment()) == NativeCollectives::off);
  const Variable variable(name, "on");
  CHECK_THROWS_WITH(native_collectives_from_environment(),
                    Catch::Contains("KPLAN_COLLECTIVES is `on`") && Catch::Contains("[KP-E008]"));
}

TEST_CASE("a build without MPI says so when its world is asked for") {
  if (kplan::transport::has_mpi()) return;
  CHECK_THROWS_AS(kplan::transport::mpi_world(), kplan::Unsupported);
}
