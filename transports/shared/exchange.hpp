#pragma once
// Sparse exchanges between few ranks that all share memory: a pipe for each two of them, through which every rank tells
// every other in each exchange what it sends, if anything. Nobody has to find out when it has ended.

#include <vector>

#include "kplan/transport.hpp"
#include "transports/in_flight.hpp"
#include "transports/shared/distance.hpp"
#include "transports/shared/pipe.hpp"

namespace kplan::transport {

/// The pipes of one rank, by rank; its own place is not used.
struct Pipes {
  std::vector<PipeMemory> outgoing, incoming;
  std::vector<std::shared_ptr<Distance>> distances;
  std::size_t chunk_bytes = 0;         ///< the same on all ranks
  std::size_t non_temporal_bytes = 0;  ///< letters of so many and more go past the caches where they are far; 0: none
};

std::unique_ptr<SparseExchange> shared_exchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight);

}  // namespace kplan::transport
