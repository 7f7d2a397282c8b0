#pragma once
// The ranks that take part in a measurement: a communicator of MPI's, with this rank's number and their count.

// MPI's C++ bindings, which MPI-3 removed, would need a library of their own.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::bench {

struct Team {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  /// What kplan's methods share, and whose memory they work on; null where ranks are only imagined.
  std::shared_ptr<transport::Transport> transport = nullptr;
  /// Transports between these ranks whose messages move only while both ends ask for it; the same on all ranks.
  std::vector<std::shared_ptr<transport::Transport>> driven = {};
};

Team team_of(MPI_Comm comm);

/// Collective over `world`: its first `size` ranks. On the others the communicator is MPI_COMM_NULL.
Team first_ranks(const Team& world, int size);

/// Collective: waits for all without taking their cores meanwhile, for ranks that have nothing to do for long.
void wait_idly(const Team& team);

/// Collective: waits for all and drives the team's transports meanwhile. What a rank does alone, or waits for in MPI,
/// goes between two of these, or others wait in vain for what this rank has not moved on.
void drive_together(const Team& team);

/// Collective: the first text that is not empty, by rank; empty when all are.
std::string first_text(const Team& team, const std::string& mine);

/// Collective: the largest value of all ranks.
double largest(const Team& team, double mine);
std::size_t largest(const Team& team, std::size_t mine);

/// Collective: what rank 0 says.
bool decided_by_first(const Team& team, bool mine);

/// Frees what MPI made, a datatype, a request or a communicator, when the last copy goes.
template <class Handle>
class Owned {
 public:
  using Free = int (*)(Handle*);
  Owned() = default;
  Owned(Handle handle, Free free)
      : handle_(new Handle(handle), [free](Handle* h) {
          free(h);
          delete h;
        }) {}
  Handle get() const { return *handle_; }

 private:
  std::shared_ptr<Handle> handle_;
};
using OwnedType = Owned<MPI_Datatype>;
using OwnedComm = Owned<MPI_Comm>;

}  // namespace kplan::bench
