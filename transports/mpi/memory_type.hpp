#pragma once
// Blocks of memory as an MPI datatype of bytes at absolute addresses, to be used with MPI_BOTTOM.

#include <span>
#include <utility>

#include "transports/mpi/call.hpp"

namespace kplan::transport::mpi_backend {

/// Owns a datatype.
class MemoryType {
 public:
  MemoryType() = default;
  explicit MemoryType(MPI_Datatype type) : type_(type) {}
  MemoryType(MemoryType&& other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  MemoryType& operator=(MemoryType&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  /// MPI keeps what requests need of a type that is freed.
  ~MemoryType() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }

  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// The bytes of the blocks, in order; ready for messages. Errors: TransportError, also for numbers that are larger than
/// MPI's ints.
MemoryType memory_type(std::span<const Blocks> blocks);

}  // namespace kplan::transport::mpi_backend
