// The main that mpirun starts: every process is one rank, and goes through all tests.
#include <cstdio>
#include <cstdlib>

#include "kplan/transport.hpp"
#include "tests/programs/on_ranks.hpp"
#include "tests/run_tests.hpp"

namespace kplan::programs {
namespace {
std::shared_ptr<transport::Transport> world;
}

void on_ranks(const std::function<void(Engine&)>& program) {
  try {
    Engine engine(world);
    program(engine);
  } catch (const std::exception& error) {
    // The others wait for this rank: mpirun ends them.
    std::fprintf(stderr, "rank %d of %d: %s\n", world->rank(), world->size(), error.what());
    std::_Exit(1);
  }
}
}  // namespace kplan::programs

int main(int argc, char** argv) {
  using kplan::programs::world;
  world = kplan::transport::mpi_world();
  const int failed = kplan::tests::run_tests(argc, argv, world->rank() == 0);
  world.reset();
  return failed;
}
