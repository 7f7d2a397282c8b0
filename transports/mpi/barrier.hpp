#pragma once
// A barrier that does not block, of our own: that of MPI must be begun in the same order on all ranks for all that use
// a communicator, which exchanges in flight together are not.

#include <optional>
#include <vector>

#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

class Barrier {
 public:
  /// `tag` belongs to this barrier.
  Barrier(World& world, int tag);

  /// Enters the next barrier, after the last was passed. False if messages of the last one are not yet sent; they will
  /// be, since all ranks are there to receive them.
  bool try_enter();
  /// Whether every rank has entered. Never blocks.
  bool is_passed();
  /// The rank whose message is waited for, if it is not passed.
  std::optional<int> awaited() const;
  /// Gives the barrier up, and returns the requests that could not end. They have no memory.
  std::vector<MPI_Request> close();

 private:
  int rounds() const { return static_cast<int>(sends_.size()); }
  void send();

  World* world_;
  Dissemination ring_;
  int tag_;
  int round_ = 0;
  std::vector<MPI_Request> sends_;     // by round
  std::vector<MPI_Request> receives_;  // by round
};

}  // namespace kplan::transport::mpi_backend
