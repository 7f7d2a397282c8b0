#pragma once
// The file in /dev/shm by which processes of one machine find a provider's memory.

#include <string>

namespace kplan::transport::ofi_backend {

/// A name for this process's next endpoint that no other process has, and that tells who made it.
std::string region_name();
/// Removes the files that processes of ours have left which are no more.
void remove_stale_regions();
void remove_region(const std::string& name);

}  // namespace kplan::transport::ofi_backend
