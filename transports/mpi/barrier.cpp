// How it works: the tokens of the dissemination barrier are empty messages with one tag: who sent one tells its round,
// and MPI keeps messages of one sender and tag in order.
#include "transports/mpi/barrier.hpp"

#include <cassert>

namespace kplan::transport::mpi_backend {

Barrier::Barrier(World& world, int tag)
    : world_(&world),
      ring_{world.rank(), world.size()},
      tag_(tag),
      round_(ring_.rounds()),
      sends_(static_cast<std::size_t>(round_), MPI_REQUEST_NULL),
      receives_(sends_) {}

void Barrier::send() {
  check(MPI_Isend(nullptr, 0, MPI_BYTE, ring_.receiver(round_), tag_, world_->comm(),
                  &sends_[static_cast<std::size_t>(round_)]),
        "MPI_Isend");
}

bool Barrier::try_enter() {
  assert(round_ == rounds());
  for (MPI_Request& request : sends_) {
    if (!is_complete(*world_, &request)) return false;
  }
  for (int round = 0; round < rounds(); ++round) {
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, ring_.sender(round), tag_, world_->comm(),
                    &receives_[static_cast<std::size_t>(round)]),
          "MPI_Irecv");
  }
  round_ = 0;
  if (rounds() > 0) send();
  return true;
}

bool Barrier::is_passed() {
  while (round_ < rounds() && is_complete(*world_, &receives_[static_cast<std::size_t>(round_)])) {
    if (++round_ < rounds()) send();
  }
  return round_ == rounds();
}

std::optional<int> Barrier::awaited() const {
  return round_ < rounds() ? std::optional(ring_.sender(round_)) : std::nullopt;
}

std::vector<MPI_Request> Barrier::close() {
  std::vector<MPI_Request> unfinished;
  for (MPI_Request& request : receives_) {
    if (request == MPI_REQUEST_NULL) continue;
    check(MPI_Cancel(&request), "MPI_Cancel");
    if (!is_complete(*world_, &request)) unfinished.push_back(request);
  }
  for (MPI_Request& request : sends_) {
    if (!is_complete(*world_, &request)) unfinished.push_back(request);
  }
  return unfinished;
}

}  // namespace kplan::transport::mpi_backend
