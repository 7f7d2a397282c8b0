#pragma once
// What a program can use for an exchange whose pattern stays, written once for all workloads.

#include <memory>
#include <vector>

#include "tools/bench/exchange/exchange.hpp"
#include "tools/bench/methods/method.hpp"

namespace kplan::bench {

using SharedExchange = std::shared_ptr<const Exchange>;

/// Hand-written loops and persistent requests, one message for each link as it is given. What lies in one piece is
/// sent and received where it lies.
Method packed_persistent(std::string name, SharedExchange exchange);
/// The same with messages sent by derived datatypes, where what arrives is not just stored.
Method packed_from_typed(SharedExchange exchange);
/// Derived datatypes and persistent requests.
Method typed_persistent(SharedExchange exchange);
/// MPI_Neighbor_alltoallv of packed buffers, MPI_Neighbor_alltoallw of datatypes.
Method neighbour_packed(SharedExchange exchange);
Method neighbour_typed(SharedExchange exchange);
/// MPI_Alltoallv, or MPI_Alltoall where all parts are equal, of packed buffers; MPI_Alltoallw of datatypes.
Method alltoall_packed(SharedExchange exchange);
Method alltoall_typed(SharedExchange exchange);
/// One PetscSF for each pair of arrays, all begun before any is ended. None in builds without PETSc, and where it lacks
/// what is needed (conversions, leaves with several roots).
std::vector<Method> star_forests(SharedExchange exchange, int block);

/// All of these that can do it, messages fused by peer. `block`: elements that always go together, for PetscSF's unit.
std::vector<Method> alternatives(const Exchange& exchange, int block = 1);

}  // namespace kplan::bench
