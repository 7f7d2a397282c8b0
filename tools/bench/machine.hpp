#pragma once
// Where numbers were measured: the machine, its caches, MPI and what it was told.

#include <nlohmann/json.hpp>

#include "tools/bench/team.hpp"

namespace kplan::bench {

using Json = nlohmann::ordered_json;

/// The last level of cache of this machine, in bytes; 32 MiB where the system does not tell.
std::size_t last_cache_bytes();

/// How much each rank reads to empty the caches: a quarter more than the last level, as ranks need not share one, and
/// four times the level before. Collective.
std::size_t flush_bytes(const Team& world);

/// Call before MPI_Init. Of Open MPI's settings the one that matters most between processes of one machine: large
/// messages through shared memory rather than by process_vm_readv, which is slower for whatever a kernel then reads.
/// A setting made by the user stays.
void choose_mpi_settings();

/// Whether that setting is made, by us or by the user.
bool is_single_copy_off();

/// Processor, cores, caches, memory, system.
Json describe_machine();
/// The MPI library, and the settings made in the environment.
Json describe_mpi();

}  // namespace kplan::bench
