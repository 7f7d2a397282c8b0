// Dispatches: the arguments name a command; MPI lives around it.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include "tools/bench/commands.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/petsc_sf.hpp"

namespace kplan::bench {
namespace {

int dispatch(const Team& world, const Options& options) {
  static const std::map<std::string, int (*)(const Team&, const Options&)> commands{
      {"patterns", patterns}, {"kernels", kernels}, {"ladder", ladder}, {"setup", setup}};
  try {
    return commands.at(options.command)(world, options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kplan-bench: rank %d: %s\n", world.rank, e.what());
    MPI_Abort(world.comm, 1);
    return 1;
  }
}

/// With MPI and PETSc around it.
int run(const Options& options) {
  if (!options.has_mpi_defaults) choose_mpi_settings();
  // Measured is what runs in the long run, not what serves until code is ready; and the cost of code apart.
  setenv("KPLAN_JIT", options.command == "setup" ? "off" : "wait", 0);
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  begin_petsc();
  const int exit_code = dispatch(team_of(MPI_COMM_WORLD), options);
  end_petsc();
  MPI_Finalize();
  return exit_code;
}

}  // namespace
}  // namespace kplan::bench

int main(int argc, char** argv) {
  const kplan::bench::ParsedOptions parsed = kplan::bench::parse_options(argc, argv);
  if (parsed.options) return kplan::bench::run(*parsed.options);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr || rank[0] == '0') {
    std::fputs(parsed.output.c_str(), stdout);
    std::fputs(parsed.errors.c_str(), stderr);
  }
  return parsed.exit_code;
}
