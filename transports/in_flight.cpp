#include "transports/in_flight.hpp"

#include <algorithm>

#include "transports/pause.hpp"

namespace kplan::transport {

[[gnu::hot]] void InFlightList::remove(InFlight& moved) {
  const auto found = std::find(moved_.begin(), moved_.end(), &moved);
  if (found == moved_.end()) return;
  *found = moved_.back();
  moved_.pop_back();
}

[[gnu::hot]] void InFlightList::move_on() {
  // From the end, since one that is taken off the list puts the last one in its place.
  for (std::size_t i = moved_.size(); i-- > 0;)
    if (i < moved_.size()) moved_[i]->move_on();
  if (!leftovers_.empty()) [[unlikely]]
    send_leftovers();
}

void InFlightList::adopt(std::unique_ptr<Leftover> leftover) {
  leftovers_.push_back(std::move(leftover));
  if (has_ended_) settle();
}

void InFlightList::send_leftovers() {
  std::erase_if(leftovers_, [](const auto& leftover) { return leftover->send(); });
}

void InFlightList::end() {
  has_ended_ = true;
  settle();
}

void InFlightList::settle() {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  for (unsigned idle = 0; !leftovers_.empty() && Clock::now() < deadline; ++idle) {
    send_leftovers();
    pause_thread(idle, true);
  }
  leftovers_.clear();
}

}  // namespace kplan::transport
