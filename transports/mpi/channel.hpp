#pragma once
// Channels over MPI point-to-point messages: one persistent request a slot at either end.

#include <memory>

#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// Open MPI sends a message of so many bytes without a request, if it is not to be a persistent one.
constexpr std::size_t longest_inlined = 256;

/// The sending end; `tag` belongs to this channel among those from this rank to the peer. A slot's message goes as
/// messages of up to `part_bytes`, the same at both ends. Errors: TransportError, std::bad_alloc.
std::unique_ptr<Channel> sending_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag,
                                     std::size_t part_bytes);

/// The receiving end, with a receive started for every slot.
std::unique_ptr<Channel> receiving_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag,
                                       std::size_t part_bytes);

}  // namespace kplan::transport::mpi_backend
