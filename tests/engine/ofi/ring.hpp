#pragma once
// A plan that passes an array around, and the processes of this program that run it over libfabric without MPI.
#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "kplan/kplan.hpp"
#include "kplan/transport.hpp"

namespace kplan::tests {

constexpr double timeout_seconds = 1.2;  ///< KPLAN_TIMEOUT of ring_transport()'s rank, once all ranks have met

/// Every rank sends its `n` elements of B to the next one's A.
Plan ring();

/// The transport of a process that start_ranks started.
std::shared_ptr<transport::Transport> ring_transport();

/// Ports at which nobody listens, all different.
std::vector<int> free_ports(int count);

/// Starts this program with the given arguments once for each rank, each with what it needs to find the others, which
/// is the port. They end with this process; SIGUSR1 is blocked in them, so that they can wait for it.
std::vector<pid_t> start_ranks(const std::vector<std::string>& arguments, int ranks, int port);

/// The status of a process that ends in time; that of one that must be killed for it otherwise.
int status_of(pid_t child);

/// The files in /dev/shm, without those of Open MPI's programs: these tests are none.
std::set<std::string> shared_files();

/// How many files are in /dev/shm that were not there before, and stay there; says which.
int files_left(const std::set<std::string>& before);

/// Prints an error that was expected if a person wants to see it: KPLAN_SHOW.
void show(const std::string& text);

}  // namespace kplan::tests
