#pragma once
// Collective operations of MPI's own, non-blocking, and persistent where MPI has them (MPI-4).

#include <memory>

#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// Collective: an operation on a duplicate of the world's communicator. See Transport::open_collective.
std::unique_ptr<Collective> open_collective(const World& world, const CollectiveSpec& spec);

}  // namespace kplan::transport::mpi_backend
