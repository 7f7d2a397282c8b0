// The conformance cases on processes over libfabric, and the main that runs them: every process runs every case, in the
// same order, each on a transport of its own; a case for fewer ranks leaves the last processes waiting.
//   mpirun -n 3 kplan-conformance-ofi            started through PMIx
//   kplan-conformance-ofi processes=3            started by a rendezvous
#include <cstring>

#include "tests/run_tests.hpp"
#include "tests/transports/ofi_processes.hpp"

int main(int argc, char** argv) {
  using namespace kplan::tests;
  constexpr const char* processes = "processes=";
  if (argc > 1 && std::strncmp(argv[1], processes, std::strlen(processes)) == 0) {
    const int count = std::atoi(argv[1] + std::strlen(processes));
    std::copy(argv + 2, argv + argc + 1, argv + 1);
    return start_processes(count, argv);
  }
  // What fails on another rank is on stderr, and fails everywhere.
  const int failed = run_tests(argc, argv, all_processes().rank() == 0);
  int worst = 0;
  for (const std::string& each : gather(std::to_string(failed))) worst = std::max(worst, std::atoi(each.c_str()));
  return worst;
}
