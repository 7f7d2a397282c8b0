#pragma once
// Sparse exchanges over MPI point-to-point messages.

#include <memory>

#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// An exchange whose tags, as many as exchange_tags::count, begin at `first_tag`.
std::unique_ptr<SparseExchange> sparse_exchange(std::shared_ptr<World> world, int first_tag);

}  // namespace kplan::transport::mpi_backend
