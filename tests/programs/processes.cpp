// The main that mpirun starts: every process is one rank, and goes through all tests.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>

#include "tests/programs/on_ranks.hpp"

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
  Catch::Session session;
  if (const int failed = session.applyCommandLine(argc, argv); failed != 0) return failed;
  if (world->rank() != 0) session.configData().outputFilename = "/dev/null";  // one report is enough
  const int failed = session.run();
  world.reset();
  return failed;
}
