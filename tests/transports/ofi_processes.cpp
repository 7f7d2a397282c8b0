#include "tests/transports/ofi_processes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace kplan::tests {

using namespace transport::control;
using transport::ofi_backend::Limits;

int start_processes(int processes, char** arguments) {
  const std::uint16_t port = port_of(listen_at({"127.0.0.1", 0}));
  std::vector<pid_t> children;
  for (int rank = 0; rank < processes; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    setenv("KPLAN_RENDEZVOUS", ("127.0.0.1:" + std::to_string(port)).c_str(), 1);
    setenv("KPLAN_RANK", std::to_string(rank).c_str(), 1);
    setenv("KPLAN_SIZE", std::to_string(processes).c_str(), 1);
    ::execv("/proc/self/exe", arguments);
    std::_Exit(127);
  }
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return worst;
}

Member& all_processes() {
  static Member all(launch_from_environment(soon()), soon());
  return all;
}

std::vector<std::string> gather(const std::string& mine) {
  return all_processes().allgather(mine, soon(), [] {});
}

std::shared_ptr<Transport> make_world(int ranks, Limits limits) {
  static int worlds = 0;
  Launch launch;
  launch.rank = all_processes().rank();
  launch.size = ranks;
  launch.key = "world " + std::to_string(worlds++);
  if (launch.rank == 0) launch.listener = listen_at({});
  std::string card;
  if (launch.rank == 0) {
    card = std::to_string(port_of(launch.listener));
    for (const std::string& host : own_hosts()) card += " " + host;
  }
  std::istringstream words(gather(card)[0]);
  if (launch.rank >= ranks) return nullptr;
  std::uint16_t port = 0;
  words >> port;
  for (std::string host; words >> host;) launch.hub.push_back({host, port});
  return make_transport(std::make_unique<Member>(std::move(launch), soon()), limits, soon());
}

void on_ofi_ranks(int ranks, Limits limits, const std::function<void(Transport&)>& body) {
  if (ranks > all_processes().size()) return;
  std::string failure;
  if (const auto transport = make_world(ranks, limits)) {
    try {
      body(*transport);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d of %d: %s\n", transport->rank(), ranks, error.what());
      failure = "failed";
    }
  }
  const std::vector<std::string> failures = gather(failure);
  const auto count = std::count(failures.begin(), failures.end(), "failed");
  if (count > 0) throw std::runtime_error(std::to_string(count) + " of " + std::to_string(ranks) + " ranks failed");
}

void on_ranks(int ranks, const std::function<void(Transport&)>& body) { on_ofi_ranks(ranks, {}, body); }

int most_ahead(int slots) { return slots; }

int many_channels() { return 1000; }

}  // namespace kplan::tests
