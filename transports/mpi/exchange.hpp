#pragma once
// Collective calls that end at a deadline.

#include <string>
#include <vector>

#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// See Transport::allgather. After an error of time the communicator has a collective call pending for ever.
std::vector<std::string> allgather(World& world, std::string_view mine, Clock::time_point deadline);

/// Sends an empty message to each of `receivers` and takes one from each of `senders`, which sets up connections.
void warm(World& world, const std::vector<int>& receivers, const std::vector<int>& senders, Clock::time_point deadline);

}  // namespace kplan::transport::mpi_backend
