// The waiting time that the environment sets, and what a build without MPI answers.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "kplan/transport.hpp"

using namespace std::chrono_literals;
using kplan::transport::timeout_from_environment;

namespace {

struct Variable {
  explicit Variable(const char* value) { setenv("KPLAN_TIMEOUT", value, 1); }
  ~Variable() { unsetenv("KPLAN_TIMEOUT"); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

}  // namespace

TEST_CASE("waits last 60 s unless KPLAN_TIMEOUT says otherwise") {
  unsetenv("KPLAN_TIMEOUT");
  CHECK(timeout_from_environment() == 60s);
  CHECK((Variable("5"), timeout_from_environment()) == 5s);
  CHECK((Variable("0.25"), timeout_from_environment()) == 250ms);
  CHECK((Variable("1000000000"), timeout_from_environment()) == 1000000000s);
}

TEST_CASE("a KPLAN_TIMEOUT that is no number of seconds above 0 is refused and quoted") {
  for (const char* value : {"", " 5", "5 ", "5s", "0", "0.0", "-1", "+1", "1e3", "nan", "inf", "0x10", "1,5",
                            "1000000001", "99999999999999999999", "0.0000000000001"}) {
    const Variable variable(value);
    CAPTURE(value);
    CHECK_THROWS_AS(timeout_from_environment(), kplan::PlanError);
    CHECK_THROWS_WITH(timeout_from_environment(),
                      Catch::Contains("KPLAN_TIMEOUT is `" + std::string(value) + "`") && Catch::Contains("[KP-E001]"));
  }
}

TEST_CASE("a build without MPI says so when its world is asked for") {
  if (kplan::transport::has_mpi()) return;
  CHECK_THROWS_AS(kplan::transport::mpi_world(), kplan::Unsupported);
}
