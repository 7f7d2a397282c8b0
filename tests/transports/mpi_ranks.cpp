// The conformance cases on the processes of MPI_COMM_WORLD, and the main that runs them: every process runs every case,
// in the same order; a case for fewer ranks leaves the last processes waiting. After each, all learn whether one
// failed.
#include <cstdio>
#include <stdexcept>

#include "kplan/mpi.hpp"
#include "tests/run_tests.hpp"
#include "tests/transports/ranks.hpp"

namespace kplan::tests {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

void on_ranks(int ranks, const std::function<void(Transport&)>& body) {
  int processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (ranks > processes) return;
  const bool takes_part = world_rank() < ranks;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, world_rank(), &comm);
  int failures = 0;
  if (takes_part) {
    try {
      const auto transport = transport::mpi(comm);
      body(*transport);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d of %d: %s\n", world_rank(), ranks, error.what());
      failures = 1;
    }
    MPI_Comm_free(&comm);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (failures > 0)
    throw std::runtime_error(std::to_string(failures) + " of " + std::to_string(ranks) + " ranks failed");
}

// MPI buffers what is sent; the transport bounds that by three rounds of slots.
int most_ahead(int slots) { return 3 * slots; }

int many_channels() { return 200; }

}  // namespace kplan::tests

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // What fails on another rank is on stderr, and fails everywhere.
  int failed = kplan::tests::run_tests(argc, argv, kplan::tests::world_rank() == 0);
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
