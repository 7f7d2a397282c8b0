#pragma once
// Keeps the disk cache from growing without end.

#include <cstdint>

namespace kplan::jit {

/// Removes the oldest files of one folder of the cache, by their time of modification, where it holds more than so many
/// bytes; and temporary files that a process left behind. Any number of processes may do so at the same time.
void evict(int directory, const char* folder, std::uint64_t most_bytes);

}  // namespace kplan::jit
