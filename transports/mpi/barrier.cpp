// How it works: the dissemination barrier (Hensgen, Finkel, Manber, 1988). In round r a rank tells the one 2^r ahead
// that it has come this far, and goes on once the one 2^r behind has told it the same; after the round in which 2^r
// reaches the number of ranks, it has heard of all. Each round has a sender of its own, so empty messages with one tag
// will do: who sent a message tells its round, and since MPI keeps messages of one sender and tag in order, the first
// is that of this barrier though the sender be in the next one already.
#include "transports/mpi/barrier.hpp"

#include <cassert>

namespace kplan::transport::mpi_backend {
namespace {

bool is_done(MPI_Request* request) {
  int is_so = 0;
  check(MPI_Test(request, &is_so, MPI_STATUS_IGNORE), "MPI_Test");
  return is_so != 0;
}

}  // namespace

Barrier::Barrier(World& world, int tag) : world_(&world), tag_(tag) {
  for (int distance = 1; distance < world.size(); distance *= 2) sends_.push_back(MPI_REQUEST_NULL);
  receives_ = sends_;
  round_ = rounds();
}

int Barrier::sender(int round) const { return (world_->rank() + world_->size() - (1 << round)) % world_->size(); }

void Barrier::send() {
  const int receiver = (world_->rank() + (1 << round_)) % world_->size();
  check(MPI_Isend(nullptr, 0, MPI_BYTE, receiver, tag_, world_->comm(), &sends_[static_cast<std::size_t>(round_)]),
        "MPI_Isend");
}

bool Barrier::try_enter() {
  assert(round_ == rounds());
  for (MPI_Request& request : sends_) {
    if (!is_done(&request)) return false;
  }
  for (int round = 0; round < rounds(); ++round) {
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, sender(round), tag_, world_->comm(),
                    &receives_[static_cast<std::size_t>(round)]),
          "MPI_Irecv");
  }
  round_ = 0;
  if (rounds() > 0) send();
  return true;
}

bool Barrier::is_passed() {
  while (round_ < rounds() && is_done(&receives_[static_cast<std::size_t>(round_)])) {
    if (++round_ < rounds()) send();
  }
  return round_ == rounds();
}

std::optional<int> Barrier::awaited() const { return round_ < rounds() ? std::optional(sender(round_)) : std::nullopt; }

std::vector<MPI_Request> Barrier::close() {
  std::vector<MPI_Request> unfinished;
  for (MPI_Request& request : receives_) {
    if (request == MPI_REQUEST_NULL) continue;
    check(MPI_Cancel(&request), "MPI_Cancel");
    if (!is_done(&request)) unfinished.push_back(request);
  }
  for (MPI_Request& request : sends_) {
    if (!is_done(&request)) unfinished.push_back(request);
  }
  return unfinished;
}

}  // namespace kplan::transport::mpi_backend
