#pragma once
// Who this process is and where the control plane's hub listens, as the launcher or the environment says.

#include <memory>
#include <string>
#include <vector>

#include "transports/control/pmix.hpp"
#include "transports/control/socket.hpp"

namespace kplan::transport::control {

struct Launch {
  int rank = 0, size = 1;
  Socket listener;                ///< of the hub; rank 0 has it, unless it is alone
  std::vector<Address> hub;       ///< where it may be reached
  std::string key;                ///< tells this world from others
  std::unique_ptr<Pmix> session;  ///< to be kept until the ranks have met; null where it was not asked
};

/// Collective over the launched processes. KPLAN_RENDEZVOUS=host:port with KPLAN_RANK and KPLAN_SIZE come first: rank 0
/// listens there. Else PMIx is asked, and where that finds no launcher this process is alone. Errors: PlanError for
/// variables that are wrong or missing; Unsupported under a launcher without PMIx; TransportError.
Launch launch_from_environment(Clock::time_point deadline);

}  // namespace kplan::transport::control
