#pragma once
// A message that a probe has taken off MPI's queue, so that its size is known before there is memory for it.

#include <cstddef>
#include <optional>

#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// One that is there. Nobody else can receive it, so it must be received, once.
struct MatchedMessage {
  int from = 0;
  std::size_t bytes = 0;
  MPI_Message handle = MPI_MESSAGE_NULL;

  /// Begins to receive it where `count` elements of `type` are as many bytes.
  void receive(void* memory, int count, MPI_Datatype type, MPI_Request* request);
  /// The same, to bytes in a row. `max_count`: see MessageType.
  void receive(std::byte* memory, int max_count, MPI_Request* request);
};

/// The next message from `source`, or from MPI_ANY_SOURCE. Drives MPI if there is none.
std::optional<MatchedMessage> match_message(World& world, int source, int tag);

}  // namespace kplan::transport::mpi_backend
