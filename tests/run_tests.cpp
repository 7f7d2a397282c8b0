// Catch2 itself, which takes longer to compile than any test.
#define CATCH_CONFIG_RUNNER
#include "tests/run_tests.hpp"

#include <catch2/catch.hpp>

int kplan::tests::run_tests(int argc, char** argv, bool reports) {
  Catch::Session session;
  if (const int failed = session.applyCommandLine(argc, argv); failed != 0) return failed;
  if (!reports) session.configData().outputFilename = "/dev/null";
  return session.run();
}
