#include "tests/engine/ofi/ring.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "transports/control/socket.hpp"

namespace kplan::tests {

using transport::Clock;

namespace {

constexpr auto longest = std::chrono::seconds(15);  // of a process, its time-outs and its end included

}  // namespace

Plan ring() {
  PlanBuilder builder("ring");
  builder.parameter("n", Scalar::i64).buffer("A", Scalar::f64, {"n"}).buffer("B", Scalar::f64, {"n"});
  builder.communicate("pass", "A[j]@(rank + 1) % size <<= B[j]@rank where j in {0 ... n - 1}");
  return builder.build();
}

/// Processes may take longer to start than the tests want to wait for faults.
std::shared_ptr<transport::Transport> ring_transport() {
  setenv("KPLAN_TIMEOUT", "10", 1);
  auto transport = transport::ofi_world();
  (void)transport->allgather("", Clock::now() + longest);
  setenv("KPLAN_TIMEOUT", std::to_string(timeout_seconds).c_str(), 1);
  return transport;
}

std::vector<int> free_ports(int count) {
  std::vector<transport::control::Socket> sockets;
  std::vector<int> out;
  for (int i = 0; i < count; ++i) {
    sockets.push_back(transport::control::listen_at({"127.0.0.1", 0}));
    out.push_back(transport::control::port_of(sockets.back()));
  }
  return out;
}

std::vector<pid_t> start_ranks(const std::vector<std::string>& arguments, int ranks, int port) {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGUSR1);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  std::vector<char*> words;
  for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("KPLAN_RENDEZVOUS", ("127.0.0.1:" + std::to_string(port)).c_str(), 1);
    setenv("KPLAN_RANK", std::to_string(rank).c_str(), 1);
    setenv("KPLAN_SIZE", std::to_string(ranks).c_str(), 1);
    setenv("KPLAN_NODE", "off", 0);
    ::execv("/proc/self/exe", words.data());
    std::_Exit(127);
  }
  return children;
}

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

std::set<std::string> shared_files() {
  std::set<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("vader_segment")) out.insert(name);
  }
  return out;
}

/// Other processes of the machine may have files there for a moment.
int files_left(const std::set<std::string>& before) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(5);
  std::set<std::string> left = shared_files();
  const auto remove_old = [&] {
    const std::set<std::string> now = shared_files();
    std::erase_if(left, [&](const std::string& each) { return before.contains(each) || !now.contains(each); });
  };
  for (remove_old(); !left.empty() && Clock::now() < deadline; remove_old()) ::usleep(10000);
  for (const std::string& each : left) std::fprintf(stderr, "left behind: /dev/shm/%s\n", each.c_str());
  return static_cast<int>(left.size());
}

void show(const std::string& text) {
  if (std::getenv("KPLAN_SHOW")) std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace kplan::tests
