#pragma once
// Channels over MPI point-to-point messages: one persistent request a slot at either end.

#include <memory>

#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// The sending end; `tag` belongs to this channel among those from this rank to the peer. Errors: TransportError,
/// std::bad_alloc.
std::unique_ptr<Channel> sending_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag);

/// The receiving end, with a receive started for every slot.
std::unique_ptr<Channel> receiving_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag);

}  // namespace kplan::transport::mpi_backend
