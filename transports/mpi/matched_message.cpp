#include "transports/mpi/matched_message.hpp"

#include "transports/mpi/message_type.hpp"

namespace kplan::transport::mpi_backend {

void MatchedMessage::receive(void* memory, int count, MPI_Datatype type, MPI_Request* request) {
  check(MPI_Imrecv(memory, count, type, &handle, request), "MPI_Imrecv");
}

void MatchedMessage::receive(std::byte* memory, int max_count, MPI_Request* request) {
  const MessageType message(bytes, max_count);
  receive(memory, message.count(), message.type(), request);
}

std::optional<MatchedMessage> match_message(World& world, int source, int tag) {
  int is_there = 0;
  MatchedMessage message;
  MPI_Status status;
  check(MPI_Improbe(source, tag, world.comm(), &is_there, &message.handle, &status), "MPI_Improbe");
  if (is_there == 0) {
    world.note_driven();
    return std::nullopt;
  }
  MPI_Count bytes = 0;
  check(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  message.from = status.MPI_SOURCE;
  message.bytes = static_cast<std::size_t>(bytes);
  return message;
}

}  // namespace kplan::transport::mpi_backend
