// How it works: a Treiber stack. Whoever takes letters takes all of them, so that no letter can go and come back
// between a look at the top and its exchange (the ABA problem).
#include "transports/local/board.hpp"

namespace kplan::transport::local_backend {

void LetterStack::push(LetterPtr letter) noexcept {
  Letter* const pushed = letter.release();
  pushed->next = top_.load(std::memory_order_relaxed);
  while (!top_.compare_exchange_weak(pushed->next, pushed, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

LetterList LetterStack::take_all() noexcept {
  LetterList letters;
  if (top_.load(std::memory_order_relaxed) == nullptr) return letters;  // leaves the cache line where it is
  Letter* top = top_.exchange(nullptr, std::memory_order_acquire);
  while (top != nullptr) {
    Letter* const below = top->next;
    letters.push_front(LetterPtr(top));
    top = below;
  }
  return letters;
}

Board::Board(int ranks, std::uint64_t first) : first_number(first), places(static_cast<std::size_t>(ranks)) {
  for (Place& place : places) place.posted.store(first, std::memory_order_relaxed);
}

}  // namespace kplan::transport::local_backend
