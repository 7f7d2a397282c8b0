#pragma once
// What a rank tells all others before they map its rings or pipes, as bytes for allgather.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transports/node/ring_store.hpp"
#include "transports/shared/ring.hpp"

namespace kplan::transport::node_path {

/// One ring in its sender's room, for one of its receivers.
struct RingCard {
  std::int64_t receiver = 0;
  std::uint64_t id = 0, offset = 0;
  ReceiverPlace place;
};

/// What a rank tells all others before they map its rings or pipes.
struct Offer {
  RoomCard room;             ///< that its rings or pipes lie in
  bool has_distant = false;  ///< it has channels to ranks of other nodes
  std::string problem;       ///< why it cannot offer anything
  std::string specs;         ///< all its ends
  std::vector<RingCard> rings;
};

std::string encode(const Offer& offer);
Offer decode_offer(std::string_view bytes);

}  // namespace kplan::transport::node_path
