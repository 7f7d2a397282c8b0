#pragma once
// Memory that each of several ranks makes for all of them.

#include <memory>
#include <vector>

#include "transports/node/neighbours.hpp"
#include "transports/node/segment.hpp"

namespace kplan::transport::node_path {

/// Collective, for ranks that are all neighbours: memory of so many bytes of each rank, by rank. Errors: TransportError
/// on all ranks, with the same words. Cost: two all-gathers, a mapping for each rank.
std::vector<std::shared_ptr<Segment>> segments_of_all(Transport& transport, const Neighbours& neighbours,
                                                      std::size_t bytes, Clock::time_point deadline);

}  // namespace kplan::transport::node_path
