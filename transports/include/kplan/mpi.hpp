#pragma once
// For programs that own MPI: a transport over a communicator of theirs. The one installed header that needs <mpi.h>.

#include <memory>

// MPI's C++ bindings, which MPI-3 removed, would need a library of their own.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include "kplan/transport.hpp"

namespace kplan::transport {

/// The ranks of `comm` over a duplicate of it, so that no message of the program's and of kplan's meet. Collective over
/// `comm`. Never initialises or finalises MPI; transports and channels that live on when MPI is finalised are closed
/// then. MPI must be initialised with MPI_THREAD_FUNNELED or more if the program has threads, and with
/// MPI_THREAD_SERIALIZED or more if another thread than the main one is to use the transport. Errors: PlanError for a
/// null or inter-communicator or when MPI is not initialised; TransportError when MPI fails; Unsupported in builds
/// without MPI.
std::shared_ptr<Transport> mpi(MPI_Comm comm);

}  // namespace kplan::transport
