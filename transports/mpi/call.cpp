// How it works: communicators of this folder have MPI_ERRORS_RETURN, so calls on them come back here with a code.
#include "transports/mpi/call.hpp"

#include <string>

#include "kplan/error.hpp"
#include "transports/codes.hpp"

namespace kplan::transport::mpi_backend {

void throw_failed(int status, const char* call) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(status, text, &length) != MPI_SUCCESS) length = 0;
  throw TransportError(codes::mpi_failed, std::string(call) + " failed: " +
                                              (length > 0 ? std::string(text, static_cast<std::size_t>(length))
                                                          : "error " + std::to_string(status)) +
                                              "; the communicator cannot be used any more");
}

bool is_mpi_up() {
  int is_initialized = 0;
  int is_finalized = 0;
  check(MPI_Initialized(&is_initialized), "MPI_Initialized");
  check(MPI_Finalized(&is_finalized), "MPI_Finalized");
  return is_initialized != 0 && is_finalized == 0;
}

}  // namespace kplan::transport::mpi_backend
