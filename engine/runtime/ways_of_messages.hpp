#pragma once
// Which ways messages may go, as both of their ends know it from their sizes and the form of their statements.

#include <algorithm>

#include "engine/runtime/pieces.hpp"
#include "engine/schedule/schedule.hpp"

namespace kplan {

/// Whether the message is long enough to go in pieces.
bool is_long(const auto& message, const transport::Transport& transport) {
  return may_go_in_pieces(message.bytes, transport.piece_bytes(static_cast<int>(message.world_rank)));
}

/// The same where it goes alike to as many ranks as one channel reaches: the more of them there are, the sooner it is
/// worth it to pack it once.
bool is_long_if_alike(const auto& message, const transport::Transport& transport) {
  const auto peer = static_cast<int>(message.world_rank);
  const std::size_t piece = transport.piece_bytes(peer),
                    spared = static_cast<std::size_t>(std::max(transport.most_receivers(peer), 1)) - 1;
  return piece > 0 && spared > 0 && spared * message.bytes >= piece / 2;
}

/// Whether it had better go in pieces that reach all receivers: all ranks that are sent something are sent the same,
/// and by the same ranks.
bool goes_alike(const StatementSchedule& s, const auto& message, const transport::Transport& transport) {
  return (s.collective.kind == transport::CollectiveKind::broadcast ||
          s.collective.kind == transport::CollectiveKind::allgather) &&
         is_long_if_alike(message, transport);
}

}  // namespace kplan
