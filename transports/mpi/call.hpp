#pragma once
// Every MPI call of this folder goes through check(), which turns its error code into a TransportError.

#include "kplan/mpi.hpp"

namespace kplan::transport::mpi_backend {

/// Throws TransportError with MPI's own words unless `status` is MPI_SUCCESS.
[[noreturn]] void throw_failed(int status, const char* call);
inline void check(int status, const char* call) {
  if (status != MPI_SUCCESS) [[unlikely]]
    throw_failed(status, call);
}

/// Whether MPI calls can be made: initialised and not finalised.
bool is_mpi_up();

}  // namespace kplan::transport::mpi_backend
