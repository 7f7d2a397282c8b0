#include "transports/node/offer.hpp"

#include "transports/bytes.hpp"

namespace kplan::transport::node_path {

std::string encode(const Offer& offer) {
  std::string out;
  append(out, offer.room);
  append(out, offer.has_distant);
  for (const std::string& text : {offer.problem, offer.specs}) {
    append(out, text.size());
    out += text;
  }
  for (const RingCard& ring : offer.rings) append(out, ring);
  return out;
}

Offer decode_offer(std::string_view in) {
  Offer out;
  out.room = take<RoomCard>(in);
  out.has_distant = take<bool>(in);
  for (std::string* text : {&out.problem, &out.specs}) {
    const auto size = take<std::size_t>(in);
    *text = in.substr(0, size);
    in.remove_prefix(size);
  }
  while (!in.empty()) out.rings.push_back(take<RingCard>(in));
  return out;
}

}  // namespace kplan::transport::node_path
