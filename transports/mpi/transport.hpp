#pragma once
// The transport over a communicator, as the backend and its tests make it.

#include <memory>

#include "transports/backend.hpp"
#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// Collective over `comm`. Tests lower the limits; they must be the same on all ranks.
std::shared_ptr<Backend> make_transport(MPI_Comm comm, Limits limits, std::shared_ptr<Session> session);

}  // namespace kplan::transport::mpi_backend
