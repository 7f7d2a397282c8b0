// How it works: the ranks say by a pipe that they are in the middle of runs, on memory that engines gave them. The
// parent notes which shared memory they have, kills them all, and looks for files in /dev/shm and for processes that
// have it mapped or open: the system keeps such memory, which has no name, for nobody else.
#include "tests/engine/ofi/killed_ranks.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/engine/ofi/ring.hpp"

namespace kplan::tests {
namespace {

constexpr int rounds = 3, runs_before = 5;
constexpr std::size_t elements = std::size_t{1} << 20;

int run_until_killed(int file) {
  Engine engine(ring_transport());
  const SharedArray<double> a = engine.allocate<double>(elements), b = engine.allocate<double>(elements);
  Executable pass = engine.compile(ring(), {{"n", elements}});
  pass.bind("A", a);
  pass.bind("B", b);
  try {
    for (int run = 0;; ++run) {
      if (run == runs_before && ::write(file, "x", 1) != 1) return 1;
      pass.run();
    }
  } catch (const TransportError&) {  // another was killed a moment before
    for (;;) ::pause();
  }
}

/// Whether so many ranks have said that they run.
bool wait_for(int file, int ranks) {
  char word = 0;
  for (int heard = 0; heard < ranks; ++heard) {
    pollfd wanted{file, POLLIN, 0};
    if (::poll(&wanted, 1, 15000) != 1 || ::read(file, &word, 1) != 1) return false;
  }
  return true;
}

/// Which shared memory of the engine's a process has mapped or open, by its number.
std::set<std::string> memory_of(const std::string& process) {
  std::set<std::string> out;
  std::ifstream maps("/proc/" + process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:kplan") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, access, offset, device, number;
    words >> range >> access >> offset >> device >> number;
    out.insert(number);
  }
  try {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + process + "/fd")) {
      struct stat about {};
      if (std::filesystem::read_symlink(entry.path()).string().find("memfd:kplan") != std::string::npos &&
          ::stat(entry.path().c_str(), &about) == 0)
        out.insert(std::to_string(about.st_ino));
    }
  } catch (const std::filesystem::filesystem_error&) {  // it ends just now, or is not ours
  }
  return out;
}

/// How often processes have some of this memory.
int users_of(const std::set<std::string>& memory) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
    for (const std::string& each : memory_of(name)) {
      if (!memory.contains(each)) continue;
      std::fprintf(stderr, "process %s has the shared memory %s\n", name.c_str(), each.c_str());
      ++count;
    }
  }
  return count;
}

/// What the system has in use: that is shown, not judged, for other programs change it too.
long shared_kib() {
  std::ifstream about("/proc/meminfo");
  for (std::string word; about >> word;)
    if (long kib = 0; word == "Shmem:" && about >> kib) return kib;
  return 0;
}

int round_of(const char* program, int ranks, int number) {
  const std::set<std::string> files = shared_files();
  const long kib = shared_kib();
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const std::vector<pid_t> children =
      start_ranks({program, "all", "rank", std::to_string(ends[1])}, ranks, free_ports(1)[0]);
  ::close(ends[1]);
  int wrong = 0;
  if (!wait_for(ends[0], ranks)) {
    std::fprintf(stderr, "the ranks do not run\n");
    ++wrong;
  }
  ::close(ends[0]);
  ::usleep(static_cast<useconds_t>(1000 * number));
  std::set<std::string> memory;
  for (const pid_t child : children) memory.merge(memory_of(std::to_string(child)));
  const long kib_of_runs = shared_kib();
  if (const char* node = std::getenv("KPLAN_NODE"); memory.empty() && node && std::string(node) == "on") {
    std::fprintf(stderr, "the ranks share no memory\n");
    ++wrong;
  }
  for (const pid_t child : children) ::kill(child, SIGKILL);
  for (const pid_t child : children) {
    const int status = status_of(child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) continue;
    std::fprintf(stderr, "a rank ended before it was killed, with status %x\n", status);
    ++wrong;
  }
  wrong += users_of(memory) + files_left(files);
  show(fmt::format("{} pieces of shared memory; in use {} KiB before, {} KiB while they ran, {} KiB after",
                   memory.size(), kib, kib_of_runs, shared_kib()));
  return wrong;
}

}  // namespace

int all_killed(int argc, char** argv) {
  if (argc == 4) return run_until_killed(std::atoi(argv[3]));
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 3;
  int wrong = 0;
  for (int number = 0; number < rounds; ++number) wrong += round_of(argv[0], ranks, number);
  if (wrong == 0) std::printf("all: nothing is left of %d ranks that were killed\n", ranks);
  return wrong > 0 ? 1 : 0;
}

}  // namespace kplan::tests
