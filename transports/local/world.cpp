// How it works: a collective call is a generation. The last rank to come publishes what all brought and starts the next
// generation; that one cannot end before every rank has fetched the result of this one, so one result is enough.
// A rank that gives up spoils the world for good, since its contribution stays behind: the others are told at once.
#include "transports/local/world.hpp"

#include <algorithm>

#include "transports/codes.hpp"
#include "transports/not_come.hpp"
#include "transports/pause.hpp"

namespace kplan::transport::local_backend {

World::World(int ranks)
    : share_cores_(is_oversubscribed(ranks)),
      is_gone_(static_cast<std::size_t>(ranks)),
      contributions_(static_cast<std::size_t>(ranks)) {}

std::vector<std::string> World::allgather(int rank, std::string_view mine, Clock::time_point deadline,
                                          InFlightList& in_flight) {
  const Clock::time_point begin = Clock::now();
  std::shared_ptr<const std::vector<std::string>> gathered;
  {
    std::unique_lock lock(mutex_);
    const std::uint64_t generation = generation_;
    std::optional<std::string>& contribution = contributions_[static_cast<std::size_t>(rank)];
    if (!contribution) ++came_;  // a call that failed has left one behind
    contribution = std::string(mine);
    if (came_ == size() && given_up_.empty()) complete();
    while (generation_ == generation) {
      throw_if_hopeless(rank);
      const Clock::time_point next_look =
          in_flight.is_empty() ? deadline : std::min(deadline, Clock::now() + std::chrono::microseconds(100));
      if (changed_.wait_until(lock, next_look) != std::cv_status::timeout || generation_ != generation) continue;
      if (Clock::now() >= deadline) {
        throw_if_hopeless(rank);
        give_up(rank, Clock::now() - begin);
      }
      lock.unlock();
      in_flight.move_on();
      lock.lock();
    }
    gathered = gathered_;
  }
  return *gathered;
}

void World::complete() {
  std::vector<std::string> all;
  for (std::optional<std::string>& contribution : contributions_) {
    all.push_back(std::move(*contribution));
    contribution.reset();
  }
  gathered_ = std::make_shared<const std::vector<std::string>>(std::move(all));
  came_ = 0;
  ++generation_;
  changed_.notify_all();
}

std::vector<int> World::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (!contributions_[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  }
  return ranks;
}

void World::throw_if_hopeless(int rank) const {
  for (const int absent : missing())
    if (is_gone(absent)) throw_ended(rank, absent);
  if (!given_up_.empty()) throw_given_up(rank, given_up_);
}

void World::give_up(int rank, Clock::duration waited) {
  given_up_ = waited_in_vain(rank, in_seconds(waited), missing(), size());
  changed_.notify_all();
  throw TransportError(codes::not_come, "in a collective call, " + given_up_);
}

void World::leave(int rank) {
  is_gone_[static_cast<std::size_t>(rank)].store(true, std::memory_order_release);
  int none = -1;
  first_gone_.compare_exchange_strong(none, rank, std::memory_order_acq_rel);
  const std::lock_guard lock(mutex_);  // so that no waiter misses it between its look and its sleep
  changed_.notify_all();
}

std::optional<int> World::first_gone() const {
  const int rank = first_gone_.load(std::memory_order_acquire);
  return rank < 0 ? std::nullopt : std::optional(rank);
}

void World::offer(const RingName& name, OfferedRing ring) {
  const std::lock_guard lock(mutex_);
  rings_[name] = std::move(ring);
}

OfferedRing World::take(const RingName& name) {
  const std::lock_guard lock(mutex_);
  const auto found = rings_.find(name);
  if (found == rings_.end()) throw InternalError("KP-X002", "a ring that both ends agreed on was not offered");
  OfferedRing ring = std::move(found->second);
  rings_.erase(found);
  return ring;
}

std::shared_ptr<Board> World::board(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  WaitingBoard& waiting = boards_[number];
  if (!waiting.board) waiting.board = std::make_shared<Board>(size());
  std::shared_ptr<Board> board = waiting.board;
  if (++waiting.fetched == size()) boards_.erase(number);
  return board;
}

}  // namespace kplan::transport::local_backend
