#pragma once
// Worlds: where a program gets the ranks from that its engines work for. What a transport can do is in
// kplan/transport.hpp, which programs do not need.

#include <functional>
#include <memory>
#include <vector>

namespace kplan::transport {

/// One rank of a world, and what moves its bytes. Belongs to one thread at a time; lives as long as an engine or an
/// executable has it. Who makes a world reads of the environment what that world needs, and throws PlanError KP-E0xx on
/// the rank where that cannot be read; an Engine reads all.
class Transport;

/// The ranks of a world of threads within this process: give each to the thread that is to be that rank. A
/// transport destroyed while others still wait for its rank is dead to them. Throws PlanError KP-E002 for less than one
/// rank.
std::vector<std::shared_ptr<Transport>> local(int ranks);

/// Runs `body` as `ranks` ranks on threads of this process and waits for all. When bodies throw, rethrows what the
/// lowest rank threw, preferring errors that are not the mere loss of another rank.
void run_local(int ranks, const std::function<void(std::shared_ptr<Transport>)>& body);

/// Whether this build has the MPI backend.
bool has_mpi();

/// The ranks of MPI_COMM_WORLD, collective over it. Initialises MPI if the program has not, and then finalises it when
/// the last such transport goes, unless that is by an exception and others do not come to it for ten seconds. Programs
/// that own MPI use kplan/mpi.hpp. Errors: Unsupported in builds without MPI; TransportError when MPI fails, or a rank
/// does not come.
std::shared_ptr<Transport> mpi_world();

/// Whether this build has the libfabric backend.
bool has_ofi();

/// The launched processes over libfabric, without MPI; collective over them. Ranks find each other by PMIx (mpirun of
/// Open MPI, srun --mpi=pmix) or, without a launcher, by KPLAN_RENDEZVOUS=host:port, where rank 0 listens, KPLAN_RANK
/// and KPLAN_SIZE. A process with neither is a world of its own. KPLAN_OFI_PROVIDER names the provider of libfabric,
/// else its own order holds; KPLAN_OFI_ONE_SIDED=off makes channels send messages also where they could write to the
/// receiver's memory. Connections between the ranks stay open and tell of those that end; a transport that is destroyed
/// waits, for up to ten seconds, until the others have taken what it sent. Regions put in place must stay mapped until
/// others are put or the channel closes. Errors: PlanError for variables that are wrong; Unsupported in builds without
/// libfabric, under launchers without PMIx, and where no provider does; TransportError when a rank does not come.
std::shared_ptr<Transport> ofi_world();

}  // namespace kplan::transport
