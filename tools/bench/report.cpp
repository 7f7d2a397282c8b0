// How it works: everything goes to stdout on rank 0, so that a redirected run holds all of it.
#include "tools/bench/report.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "tools/bench/petsc_sf.hpp"

namespace kplan::bench {

void say(const Team& world, const std::string& text) {
  if (world.rank != 0) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void say_where(const Team& world, std::size_t flushed_bytes) {
  if (world.rank != 0) return;
  const Json machine = describe_machine(), mpi = describe_mpi();
  std::string out = fmt::format("{}, {} cores; {}; {} ranks\n", machine["processor"].get<std::string>(),
                                machine["cores"].get<long>(), mpi["library"].get<std::string>(), world.size);
  for (const auto& [name, value] : mpi["settings"].items())
    out += fmt::format("set: {}={}\n", name, value.get<std::string>());
  if (is_single_copy_off())
    out +=
        "Open MPI does not copy from process to process (CMA), kplan may (KPLAN_FETCH_BYTES); --mpi-defaults: both\n";
  if (flushed_bytes > 0)
    out += fmt::format("cold: each rank reads {} before each sample\n", text_of_bytes(flushed_bytes));
  if (petsc_version().empty())
    out += "PetscSF is skipped: built without PETSc; install libpetsc-real-dev and configure anew\n";
  if (world.size > machine["cores"].get<long>())
    out += "more ranks than cores: times are those of the scheduler, compare with care\n";
  say(world, out + legend() + "\n");
}

void write_files(const Team& world, const Options& options, const std::vector<Result>& results,
                 const std::vector<std::pair<std::string, Plot>>& plots) {
  if (world.rank != 0) return;
  if (!options.json_file.empty()) {
    write_json(options.json_file, results);
    say(world, "written: " + options.json_file + "\n");
  }
  if (options.plot_file.empty()) return;
  std::string stem = options.plot_file;
  if (stem.ends_with(".svg")) stem.resize(stem.size() - 4);
  for (std::size_t k = 0; k < plots.size(); ++k)
    say(world, draw(plots[k].second, k == 0 ? stem + ".svg" : stem + "-" + plots[k].first + ".svg") + "\n");
}

}  // namespace kplan::bench
