#pragma once
// The memory of another process of the node, as the system copies it.

#include <cstddef>

namespace kplan::transport::node_path {

/// Copies from that address in another process. False where it has ended, or may not be looked into, or has no such
/// memory; some may have been copied then. System calls.
bool copy_from_process(int process, const std::byte* theirs, std::byte* to, std::size_t bytes);

}  // namespace kplan::transport::node_path
