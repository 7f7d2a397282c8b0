#include "transports/node/offer.hpp"

#include "transports/bytes.hpp"

namespace kplan::transport::node_path {

std::string encode(const Offer& offer) {
  std::string out;
  append_sized(out, offer.ends);
  append(out, offer.has_room);
  append(out, offer.room);
  for (const RingCard& ring : offer.rings) append(out, ring);
  return out;
}

Offer decode_offer(std::string_view in) {
  Offer out;
  out.ends = take_sized(in);
  out.has_room = take<bool>(in);
  out.room = take<RoomCard>(in);
  while (!in.empty()) out.rings.push_back(take<RingCard>(in));
  return out;
}

}  // namespace kplan::transport::node_path
