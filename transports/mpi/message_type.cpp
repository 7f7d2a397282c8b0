// How it works: bytes = blocks * max_count + remainder; a struct type holds `blocks` elements of a contiguous block at
// offset 0 and `remainder` bytes behind them. Its type signature is that of plain bytes, so that a receive may be
// larger than the message and of another composition.
#include "transports/mpi/message_type.hpp"

#include <string>

#include "kplan/error.hpp"
#include "transports/codes.hpp"

namespace kplan::transport::mpi_backend {

MessageType::MessageType(std::size_t bytes, int max_count) {
  const auto block_bytes = static_cast<std::size_t>(max_count);
  if (bytes <= block_bytes) {
    count_ = static_cast<int>(bytes);
    return;
  }
  const std::size_t blocks = bytes / block_bytes;
  if (blocks > block_bytes)
    throw TransportError(codes::too_large, "a message of " + std::to_string(bytes) +
                                               " bytes; one MPI message holds less than " +
                                               std::to_string(block_bytes * (block_bytes + 1)));
  MPI_Datatype block = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(max_count, MPI_BYTE, &block), "MPI_Type_contiguous");
  const int counts[] = {static_cast<int>(blocks), static_cast<int>(bytes % block_bytes)};
  const MPI_Aint offsets[] = {0, static_cast<MPI_Aint>(blocks * block_bytes)};
  const MPI_Datatype types[] = {block, MPI_BYTE};
  const int made = MPI_Type_create_struct(counts[1] > 0 ? 2 : 1, counts, offsets, types, &type_);
  MPI_Type_free(&block);
  check(made, "MPI_Type_create_struct");
  is_own_ = true;
  count_ = 1;
  if (const int committed = MPI_Type_commit(&type_); committed != MPI_SUCCESS) {
    MPI_Type_free(&type_);
    throw_failed(committed, "MPI_Type_commit");
  }
}

// MPI keeps what pending requests need of a type that is freed.
MessageType::~MessageType() {
  if (is_own_) MPI_Type_free(&type_);
}

}  // namespace kplan::transport::mpi_backend
