// What the other ranks of a run over libfabric make of one that is killed, stopped, or leaves early: each gets the
// error that says so within the time-out, can still end in order, and nothing is left in /dev/shm.
//   lost_rank kill|stop|leave [RANKS]     starts so many processes, for each victim in turn, and judges how they end
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "kplan/kplan.hpp"
#include "transports/control/socket.hpp"

using namespace kplan;
using transport::Clock;

namespace {

constexpr int run_of_loss = 200;
constexpr auto longest = std::chrono::seconds(15);  // of a process, its time-outs of two seconds and its end included

[[noreturn]] void be_lost(const std::string& way) {
  if (way == "kill") raise(SIGKILL);
  if (way == "stop") raise(SIGSTOP);
  std::_Exit(0);
}

/// One rank: a ring of messages until the victim is lost. 0 if the error is as expected.
int take_part(const std::string& way, int victim) {
  try {
    const auto transport = transport::ofi_world();
    Engine engine(transport);
    PlanBuilder builder("ring");
    builder.buffer("A", Scalar::f64, {1000}).buffer("B", Scalar::f64, {1000});
    builder.communicate("pass", "A[j]@(rank + 1) % size <<= B[j]@rank where j in {0 ... 999}");
    Executable ring = engine.compile(builder.build());
    std::vector<double> a(1000), b(1000, engine.rank());
    ring.bind("A", a);
    ring.bind("B", b);
    for (int run = 0; run < 100 * run_of_loss; ++run) {
      if (run == run_of_loss && engine.rank() == victim) be_lost(way);
      ring.run();
    }
    std::fprintf(stderr, "rank %d noticed nothing\n", engine.rank());
  } catch (const TransportError& error) {
    const char* const wanted = way == "stop" ? "KP-T004" : "KP-T002";
    if (error.code() == wanted) return 0;
    // Who waits for a rank that has given up for that reason finds that it has ended.
    if (way == "stop" && error.code() == "KP-T002") return 0;
    std::fprintf(stderr, "expected %s: %s\n", wanted, error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "expected a transport error: %s\n", error.what());
  }
  return 1;
}

pid_t start(const char* program, const std::string& way, int victim, int rank, int ranks, int port) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  setenv("KPLAN_RENDEZVOUS", ("127.0.0.1:" + std::to_string(port)).c_str(), 1);
  setenv("KPLAN_RANK", std::to_string(rank).c_str(), 1);
  setenv("KPLAN_SIZE", std::to_string(ranks).c_str(), 1);
  setenv("KPLAN_TIMEOUT", "2", 1);
  setenv("KPLAN_NODE", "off", 0);
  ::execl("/proc/self/exe", program, way.c_str(), "rank", std::to_string(victim).c_str(), nullptr);
  std::_Exit(127);
}

/// The status of a process that ends in time; that of one that must be killed for it otherwise.
int status_of(pid_t child) {
  const Clock::time_point deadline = Clock::now() + longest;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    ::usleep(1000);
  }
  return status;
}

int files_of(const std::vector<pid_t>& processes) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    for (const pid_t process : processes) {
      if (entry.path().filename().string().find(std::to_string(process)) == std::string::npos) continue;
      std::fprintf(stderr, "left behind: %s\n", entry.path().c_str());
      ++count;
    }
  }
  return count;
}

int judge(const char* program, const std::string& way, int victim, int ranks) {
  const int port = transport::control::port_of(transport::control::listen_at({"127.0.0.1", 0}));
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) children.push_back(start(program, way, victim, rank, ranks, port));
  int wrong = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == victim) continue;
    const int status = status_of(children[static_cast<std::size_t>(rank)]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    std::fprintf(stderr, "%s of rank %d: rank %d ends with status %x\n", way.c_str(), victim, rank, status);
    ++wrong;
  }
  const pid_t lost = children[static_cast<std::size_t>(victim)];
  if (way == "stop") ::kill(lost, SIGKILL);
  (void)status_of(lost);
  return wrong + files_of(children);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[2], "rank") == 0) return take_part(argv[1], std::atoi(argv[3]));
  const std::string way = argc > 1 ? argv[1] : "";
  if (way != "kill" && way != "stop" && way != "leave") {
    std::fprintf(stderr, "usage: lost_rank kill|stop|leave [RANKS]\n");
    return 2;
  }
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 3;
  int wrong = 0;
  for (int victim = 0; victim < ranks; ++victim) wrong += judge(argv[0], way, victim, ranks);
  if (wrong == 0) std::printf("%s: all as it should be, whichever of %d ranks is lost\n", way.c_str(), ranks);
  return wrong > 0 ? 1 : 0;
}
