#pragma once
// The ways a message of some size can take between two ranks, each as an echo (rank 0 sends, rank 1 sends back what it
// got) and as an exchange both ways at once.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kplan/transport.hpp"
#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/team.hpp"

namespace kplan::bench {

/// What all paths of one size work on: a rank sends `out` and receives into `in`. Memory of the team's transport.
struct Ends {
  AlignedMemory out, in;
  Ends(const Team& team, std::size_t bytes)
      : out(team.transport->allocate(bytes), bytes), in(team.transport->allocate(bytes), bytes) {}
};

struct Path {
  std::string name;
  std::function<void()> echo;       ///< there and back
  std::function<void()> both_ways;  ///< one message each way
};

/// One of kplan's transports between the two ranks.
struct Route {
  std::string name;
  std::shared_ptr<transport::Transport> transport;
  bool ends_when_sent = false;  ///< a message may not leave while its sender is busy with something else
  bool is_in_place = false;     ///< regions are sent in place, too
};

/// Collective over a team of two ranks: mpi with shared memory and without, and libfabric by its providers tcp and shm
/// as far as they are there; says which ones are not. Has the team drive libfabric's, whose ranks must keep asking for
/// progress also while they wait for another method.
std::vector<Route> routes(Team& pair);

/// Collective over a team of two ranks. On each route, slots of channels, filled and emptied by copies; on the first
/// one and on libfabric also regions sent in place; on the first one also a compiled plan over bound buffers, once as
/// from any memory and once as from memory that the engine has allocated.
std::vector<Path> kplan_paths(const Team& pair, const std::vector<Route>& routes, Ends& ends);

/// Blocking and persistent messages of MPI, the latter also through buffers as packing would have it, and the copy of
/// the same bytes within a process.
std::vector<Path> other_paths(const Team& pair, Ends& ends);

}  // namespace kplan::bench
