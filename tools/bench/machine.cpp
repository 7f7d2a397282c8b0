// How it works: reads what Linux tells in /proc and /sys; what it does not tell is left out.
#include "tools/bench/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tools/bench/petsc_sf.hpp"

extern char** environ;

namespace kplan::bench {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

/// Bytes of the first processor's data or unified caches, by level from 1; 0 where there is none.
std::vector<std::size_t> cache_sizes() {
  std::vector<std::size_t> out(5, 0);
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = first_line(folder + "level"), size = first_line(folder + "size");
    if (level.empty() || size.empty() || first_line(folder + "type") == "Instruction") continue;
    const std::size_t unit = size.back() == 'K' ? 1024 : size.back() == 'M' ? 1024 * 1024 : 1;
    out.at(static_cast<std::size_t>(std::clamp(std::atoi(level.c_str()), 0, 4))) =
        unit * static_cast<std::size_t>(std::atol(size.c_str()));
  }
  return out;
}

constexpr const char* single_copy_setting = "OMPI_MCA_btl_vader_single_copy_mechanism";

}  // namespace

std::size_t last_cache_bytes() {
  const std::size_t largest_level = std::ranges::max(cache_sizes());
  return largest_level > 0 ? largest_level : std::size_t{32} << 20;
}

std::size_t flush_bytes(const Team& world) {
  return largest(world, std::max(last_cache_bytes() / 4 * 5, 4 * cache_sizes()[2]));
}

void choose_mpi_settings() { setenv(single_copy_setting, "none", 0); }

bool is_single_copy_off() {
  const char* mechanism = std::getenv(single_copy_setting);
  return mechanism != nullptr && std::string(mechanism) == "none";
}

Json describe_machine() {
  utsname system{};
  uname(&system);
  Json caches = Json::object();
  const std::vector<std::size_t> sizes = cache_sizes();
  for (std::size_t level = 1; level < sizes.size(); ++level)
    if (sizes[level] > 0) caches["L" + std::to_string(level) + "_bytes"] = sizes[level];
  return {{"processor", processor_name()},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"caches", caches},
          {"memory_bytes", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)},
          {"system", std::string(system.sysname) + " " + system.release},
          {"load", first_line("/proc/loadavg")},
          {"compiler", "g++ or clang " __VERSION__}};
}

Json describe_mpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string library(text);
  library.resize(std::min(library.find_first_of("\n,"), library.size()));
  Json settings = Json::object();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string setting = *variable;
    if (!setting.starts_with("OMPI_MCA_") && !setting.starts_with("MPICH_") && !setting.starts_with("KPLAN_")) continue;
    if (setting.starts_with("OMPI_MCA_orte") || setting.starts_with("OMPI_MCA_ess") ||
        setting.starts_with("OMPI_MCA_pmix") || setting.starts_with("OMPI_MCA_initial"))
      continue;
    const std::size_t equals = setting.find('=');
    settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return {{"library", library}, {"settings", settings}, {"petsc", petsc_version()}};
}

}  // namespace kplan::bench
