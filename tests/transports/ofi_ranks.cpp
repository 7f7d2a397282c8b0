// The conformance cases on processes over libfabric, and the main that runs them: every process runs every case, in the
// same order, each on a transport of its own; a case for fewer ranks leaves the last processes waiting.
//   mpirun -n 3 kplan-conformance-ofi            started through PMIx
//   kplan-conformance-ofi processes=3            started by a rendezvous
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/transports/ofi_processes.hpp"

int main(int argc, char** argv) {
  using namespace kplan::tests;
  constexpr const char* processes = "processes=";
  if (argc > 1 && std::strncmp(argv[1], processes, std::strlen(processes)) == 0) {
    const int count = std::atoi(argv[1] + std::strlen(processes));
    std::copy(argv + 2, argv + argc + 1, argv + 1);
    return start_processes(count, argv);
  }
  Catch::Session session;
  int failed = session.applyCommandLine(argc, argv);
  if (failed != 0) return failed;
  // One report is enough; what fails on another rank is on stderr, and fails everywhere.
  if (all_processes().rank() != 0) session.configData().outputFilename = "/dev/null";
  failed = session.run();
  int worst = 0;
  for (const std::string& each : gather(std::to_string(failed))) worst = std::max(worst, std::atoi(each.c_str()));
  return worst;
}
