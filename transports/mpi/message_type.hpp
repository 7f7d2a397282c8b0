#pragma once
// How a number of bytes is said to MPI, whose counts are ints: as so many MPI_BYTE while they fit, else as one
// element of a type made of full blocks and a remainder.

#include <cstddef>

#include "transports/mpi/call.hpp"

namespace kplan::transport::mpi_backend {

class MessageType {
 public:
  /// `max_count` is INT_MAX but in tests. Errors: TransportError, also from max_count * (max_count + 1) bytes on.
  MessageType(std::size_t bytes, int max_count);
  ~MessageType();
  MessageType(const MessageType&) = delete;
  MessageType& operator=(const MessageType&) = delete;

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
  bool is_own_ = false;
};

}  // namespace kplan::transport::mpi_backend
