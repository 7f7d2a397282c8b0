// How it works: names hold the process number and the number space that it is of, so that a file can be told to be left
// over, and one of another container that shares /dev/shm is never taken for that.
#include "transports/ofi/region_file.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace kplan::transport::ofi_backend {
namespace {

constexpr const char* directory = "/dev/shm/";

std::string prefix() {
  struct stat space {};
  const bool is_known = ::stat("/proc/self/ns/pid", &space) == 0;
  return "kplan." + std::to_string(is_known ? space.st_ino : 0) + "." + std::to_string(::geteuid()) + ".";
}

}  // namespace

std::string region_name() {
  static std::atomic<int> count{0};
  return prefix() + std::to_string(::getpid()) + "." + std::to_string(count++);
}

void remove_stale_regions() {
  const std::string ours = prefix();
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory), ::closedir);
  if (!entries) return;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (!name.starts_with(ours)) continue;
    const long process = std::strtol(name.c_str() + ours.size(), nullptr, 10);
    if (process > 0 && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) remove_region(name);
  }
}

void remove_region(const std::string& name) { (void)::unlink((directory + name).c_str()); }

}  // namespace kplan::transport::ofi_backend
