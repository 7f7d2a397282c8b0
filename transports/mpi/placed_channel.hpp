#pragma once
// Ends of channels whose messages lie in the program's memory: MPI sends and receives them there, by datatypes.

#include <memory>

#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// The sending end; `tag` and `part_bytes` as for sending_end.
std::unique_ptr<Channel> placed_sending_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag,
                                            std::size_t part_bytes);

/// The receiving end.
std::unique_ptr<Channel> placed_receiving_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag,
                                              std::size_t part_bytes);

}  // namespace kplan::transport::mpi_backend
