#pragma once
// What a rank tells a neighbour before that one maps its rings, as bytes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transports/node/ring_store.hpp"
#include "transports/shared/ring.hpp"

namespace kplan::transport::node_path {

/// A ring for that neighbour.
struct RingCard {
  std::uint64_t id = 0, offset = 0;
  ReceiverPlace place;
};

struct Offer {
  std::string ends;       ///< of channels with that neighbour, by announcements_of
  bool has_room = false;  ///< for its rings; else it has none, or could not make any
  RoomCard room;
  std::vector<RingCard> rings;
};

std::string encode(const Offer& offer);
Offer decode_offer(std::string_view bytes);

}  // namespace kplan::transport::node_path
