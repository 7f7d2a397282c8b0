#include "transports/in_flight.hpp"

#include <algorithm>

namespace kplan::transport {

[[gnu::hot]] void InFlightList::remove(InFlight& exchange) {
  const auto found = std::find(exchanges_.begin(), exchanges_.end(), &exchange);
  if (found == exchanges_.end()) return;
  *found = exchanges_.back();
  exchanges_.pop_back();
}

void InFlightList::move_on() {
  // From the end, since one that takes itself off the list puts the last one in its place.
  for (std::size_t i = exchanges_.size(); i-- > 0;) exchanges_[i]->move_on();
}

}  // namespace kplan::transport
