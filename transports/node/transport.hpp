#pragma once
// The node path: ranks of one node exchange through shared memory, whatever transport carries the rest.

#include <memory>

#include "transports/backend.hpp"

namespace kplan::transport::node_path {

/// Collective over the ranks of `base`: the same transport with shared memory between processes of a node; `base`
/// itself where KPLAN_NODE=off says so, or no two ranks share a node.
std::shared_ptr<Transport> with_node_path(std::shared_ptr<Backend> base);

}  // namespace kplan::transport::node_path
