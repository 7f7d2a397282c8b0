// How it works: the ranks meet over the control plane. Each opens an endpoint of the first provider that can be opened;
// all compare what they have chosen, exchange the endpoints' names, and try what the provider's description leaves
// open.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "transports/codes.hpp"
#include "transports/environment.hpp"
#include "transports/matching.hpp"
#include "transports/ofi/region_file.hpp"
#include "transports/ofi/trial.hpp"
#include "transports/ofi/world.hpp"
#include "transports/pause.hpp"

namespace kplan::transport::ofi_backend {
namespace {

/// What processes that share memory have in common.
std::string machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char host[256] = "";
  (void)::gethostname(host, sizeof host - 1);
  return boot + " " + host;
}

}  // namespace

World::World(std::unique_ptr<control::Member> member, Limits limits, Clock::time_point deadline)
    : member_(std::move(member)), limits_(limits), mailboxes_(size()) {
  was_greeted_by_.resize(static_cast<std::size_t>(size()));
  is_done_with_.resize(was_greeted_by_.size());
  std::string problem;
  try {
    open_endpoint();
  } catch (const std::exception& error) {
    problem = without_code(error);
  }
  const auto no_move = [] {};
  const std::vector<std::string> problems = member_->allgather(problem, deadline, no_move);
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty())
      throw Unsupported(codes::bad_provider, "rank " + std::to_string(rank) + ": " + problems[rank]);
  }
  const std::string own = endpoint_->provider().name() +
                          (endpoint_->provider().is_one_sided ? " with writes of " : " with messages of ") +
                          std::to_string(limits_.piece_bytes) + " bytes at the most";
  const std::vector<std::string> chosen = member_->allgather(own, deadline, no_move);
  for (std::size_t rank = 1; rank < chosen.size(); ++rank) {
    if (chosen[rank] != chosen[0])
      throw Unsupported(codes::bad_provider, "rank 0 uses the provider " + chosen[0] + ", rank " +
                                                 std::to_string(rank) + " " + chosen[rank] +
                                                 "; set KPLAN_OFI_PROVIDER to the same on all ranks");
  }
  meet(member_->allgather(machine(), deadline, no_move), deadline);
}

/// The first one that can be opened. Providers are listed for hardware that may turn out not to work.
void World::open_endpoint() {
  std::string problems;
  for (Provider& provider : providers(size())) {
    const std::string name = provider.name();
    try {
      auto endpoint = std::make_unique<Endpoint>(std::move(provider));
      if (endpoint->provider().is_local()) {
        remove_stale_regions();
        endpoint->rename(region_name());
      }
      endpoint->open();
      endpoint->set_listener(*this);
      endpoint_ = std::move(endpoint);
      limits_.piece_bytes = std::min(limits_.piece_bytes, endpoint_->info().ep_attr->max_msg_size);
      Recipient& recipient = *this;
      post_ = std::make_unique<Post>(*endpoint_, recipient, rank(), size(), limits_.piece_bytes);
      return;
    } catch (const TransportError& error) {
      problems += (problems.empty() ? "" : "; ") + name + ": " + without_code(error);
    }
  }
  throw Unsupported(codes::bad_provider, "no provider of libfabric can be opened: " + problems);
}

void World::meet(const std::vector<std::string>& machines, Clock::time_point deadline) {
  const std::string& own = machines[static_cast<std::size_t>(rank())];
  neighbours_ = static_cast<int>(std::count(machines.begin(), machines.end(), own));
  const bool is_local = endpoint_->provider().is_local();
  for (std::size_t other = 1; other < machines.size() && is_local; ++other) {
    if (machines[other] != machines[0])
      throw Unsupported(codes::bad_provider, "the provider " + endpoint_->provider().name() +
                                                 " joins processes of one machine, and rank " + std::to_string(other) +
                                                 " is on another one than rank 0; set KPLAN_OFI_PROVIDER to "
                                                 "tcp;ofi_rxm or that of the network between them");
  }
  endpoint_->connect(member_->allgather(endpoint_->name(), deadline, [] {}));
  if (is_local) hide_files(deadline);
  Target target;
  if (endpoint_->provider().is_one_sided) {
    target_registration_ = Registration::remote(*endpoint_, target_.data(), target_.size());
    target = {target_registration_.remote_address(target_.data()), target_registration_.key()};
  }
  const std::vector<std::string> targets = allgather({reinterpret_cast<const char*>(&target), sizeof target}, deadline);
  if (endpoint_->provider().is_one_sided && size() > 1) try_writing(targets, deadline);
  if (rank() == 0 && size() > 1 && !is_one_sided() && one_sided_from_environment())
    std::fprintf(
        stderr,
        "kplan: the libfabric provider %s cannot write into another rank's memory and notify it; channels send "
        "tagged messages, which copies more\n",
        endpoint_->provider().name().c_str());
}

/// Finds out whether writes with a notification, and small ones without memory, are there: some providers claim the
/// former by the size of the notification, and do not have the call (cxi, lnx).
void World::try_writing(const std::vector<std::string>& targets, Clock::time_point deadline) {
  const int next = (rank() + 1) % size();
  Target target;
  std::memcpy(&target, targets[static_cast<std::size_t>(next)].data(), sizeof target);
  trial_ = std::make_unique<Trial>(*endpoint_, next, target);
  const auto is_there = [&](const auto& write) {
    for (unsigned idle = 0;; ++idle) {
      const ssize_t status = write();
      if (status == 0) return true;
      if (status != -FI_EAGAIN) return false;
      progress();
      if (Clock::now() >= deadline)
        throw TransportError(codes::not_come,
                             "rank " + std::to_string(rank()) + " could not reach rank " + std::to_string(next) +
                                 " by " + endpoint_->provider().name() +
                                 "; where hosts have several networks, say which one (FI_TCP_IFACE for "
                                 "tcp), or raise KPLAN_TIMEOUT");
      pause_thread(idle, true);
    }
  };
  is_one_sided_ = is_there([this] { return trial_->write(); });
  if (is_one_sided_ && is_there([this] { return trial_->inject(); }))
    most_injected_ = endpoint_->info().tx_attr->inject_size;
  // Who ends at once must not close a connection that is half open: ofi_rxm of libfabric 1.17 crashes then.
  const int before = (rank() + size() - 1) % size();
  warm(before == next ? std::vector{next} : std::vector{before, next}, deadline);
}

/// Lets all map the provider's memory now, and removes the name by which they found it: nothing can be left behind.
void World::hide_files(Clock::time_point deadline) {
  std::vector<int> others;
  for (int each = 0; each < size(); ++each) {
    if (each != rank()) others.push_back(each);
  }
  warm(others, deadline);
  (void)allgather("", deadline);
  std::string name = endpoint_->name();
  if (const std::size_t scheme = name.find("://"); scheme != std::string::npos) name.erase(0, scheme + 3);
  remove_region(name);
}

}  // namespace kplan::transport::ofi_backend
