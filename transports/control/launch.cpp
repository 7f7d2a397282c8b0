// How it works: by PMIx, rank 0 publishes a random key, its hub's port and the addresses of its machine; by rendezvous,
// all of them are given. A launcher that is there but speaks no PMIx must not be taken for none: each process would run
// alone.
#include "transports/control/launch.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "transports/codes.hpp"
#include "transports/environment.hpp"

namespace kplan::transport::control {
namespace {

std::optional<int> number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < least || value > most) return std::nullopt;
  return value;
}

int number_in(const char* name, int least, int most) {
  const std::string text = variable(name);
  if (const std::optional<int> value = number(text, least, most)) return *value;
  throw PlanError(codes::bad_start, std::string("the environment variable ") + name + " is `" + text +
                                        "`; a rendezvous wants a number from " + std::to_string(least) + " to " +
                                        std::to_string(most) + " there");
}

Address rendezvous_address() {
  const std::string text = variable("KPLAN_RENDEZVOUS");
  const std::size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : number(text.substr(colon + 1), 1, 65535);
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (port && !host.empty()) return {host, static_cast<std::uint16_t>(*port)};
  throw PlanError(codes::bad_start, "the environment variable KPLAN_RENDEZVOUS is `" + text +
                                        "`; it must be host:port, where rank 0 can listen and the others reach it");
}

Launch by_rendezvous() {
  Launch launch;
  launch.size = number_in("KPLAN_SIZE", 1, 1 << 20);
  launch.rank = number_in("KPLAN_RANK", 0, launch.size - 1);
  launch.hub.push_back(rendezvous_address());
  launch.key = "rendezvous";
  if (launch.rank == 0 && launch.size > 1) launch.listener = listen_at(launch.hub.front());
  return launch;
}

std::string random_key() {
  std::random_device device;
  std::ostringstream text;
  for (int i = 0; i < 4; ++i) text << std::hex << device();
  return text.str();
}

Launch by_pmix(std::unique_ptr<Pmix> session, Clock::time_point deadline) {
  Launch launch;
  launch.rank = session->rank();
  launch.size = session->size();
  if (launch.size == 1) return launch;
  std::string card;
  if (launch.rank == 0) {
    launch.listener = listen_at({});
    card = random_key() + " " + std::to_string(port_of(launch.listener));
    for (const std::string& host : own_hosts()) card += " " + host;
  }
  std::istringstream words(session->tell(card, deadline));
  launch.session = std::move(session);
  int port = 0;
  words >> launch.key >> port;
  for (std::string host; words >> host;) launch.hub.push_back({host, static_cast<std::uint16_t>(port)});
  return launch;
}

}  // namespace

Launch launch_from_environment(Clock::time_point deadline) {
  for (const char* name : {"KPLAN_RENDEZVOUS", "KPLAN_RANK", "KPLAN_SIZE"}) {
    if (std::getenv(name) != nullptr) return by_rendezvous();
  }
  if (std::unique_ptr<Pmix> session = Pmix::connect()) return by_pmix(std::move(session), deadline);
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (number(variable(name), 2, 1 << 30)) {
      throw Unsupported(codes::no_pmix, std::string("this process is one of ") + variable(name) + " (" + name +
                                            "), and its launcher does not offer PMIx; start with Open MPI's mpirun or "
                                            "srun --mpi=pmix, or set KPLAN_RANK, KPLAN_SIZE and KPLAN_RENDEZVOUS");
    }
  }
  return {};
}

}  // namespace kplan::transport::control
