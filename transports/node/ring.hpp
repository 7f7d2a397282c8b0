#pragma once
// A channel between two processes of one node: a ring of slots in a segment. The flag that says which message a slot
// holds stands behind the slot's bytes, on the last of their cache lines: a small message and its flag are one line.

#include <memory>

#include "kplan/transport.hpp"
#include "transports/node/segment.hpp"

namespace kplan::transport::node_path {

/// Bytes of segment that a channel takes; a multiple of 64.
std::size_t ring_bytes(std::size_t capacity_bytes, int slots);

/// The ends of the ring that lies at `offset` of the segment.
std::unique_ptr<Channel> sending_end(std::shared_ptr<Segment> segment, std::size_t offset, const ChannelSpec& spec);
std::unique_ptr<Channel> receiving_end(std::shared_ptr<Segment> segment, std::size_t offset, const ChannelSpec& spec);

}  // namespace kplan::transport::node_path
