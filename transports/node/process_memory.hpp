#pragma once
// The memory of another process of the node, as the system copies it.

#include "transports/shared/regions.hpp"

namespace kplan::transport::node_path {

/// Copies from regions of another process's to as many bytes of this one's. False where it has ended, or may not be
/// looked into, or has no such memory; some may have been copied then. System calls.
bool copy_from_process(int process, RegionCursor theirs, RegionCursor mine);

}  // namespace kplan::transport::node_path
