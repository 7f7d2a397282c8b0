// How it works: a letter is matched by a probe that takes it off MPI's queue, which tells its size; the receive that
// follows gets memory of that size. Small letters have come by then, large ones are on their way from memory to memory.
// MPI matches those of one sender in the order in which they were sent.
#include "transports/mpi/inbox.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "transports/mpi/message_type.hpp"

namespace kplan::transport::mpi_backend {

void Inbox::clear() {
  assert(!is_arriving());
  received_.clear();
  for (Incoming& incoming : incoming_) pool_.give(std::move(incoming.letter));
  incoming_.clear();
}

void Inbox::take_own(std::span<const std::byte> bytes) {
  LetterPtr letter = pool_.take(bytes.size());
  if (!bytes.empty()) std::memcpy(letter->data(), bytes.data(), bytes.size());
  letter->from = world_->rank();
  received_.push_back(letter->view());
  incoming_.push_back({std::move(letter), MPI_REQUEST_NULL});
}

bool Inbox::match(int source, int tag) {
  int is_there = 0;
  MPI_Message matched = MPI_MESSAGE_NULL;
  MPI_Status status;
  check(MPI_Improbe(source, tag, world_->comm(), &is_there, &matched, &status), "MPI_Improbe");
  if (is_there == 0) return false;
  MPI_Count bytes = 0;
  check(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  incoming_.push_back({pool_.take(static_cast<std::size_t>(bytes)), MPI_REQUEST_NULL});
  arriving_.push_back(incoming_.size() - 1);
  Incoming& incoming = incoming_.back();
  incoming.letter->from = status.MPI_SOURCE;
  const MessageType message(incoming.letter->bytes, world_->limits().max_count);
  check(MPI_Imrecv(incoming.letter->data(), message.count(), message.type(), &matched, &incoming.request),
        "MPI_Imrecv");
  return true;
}

void Inbox::finish() {
  std::erase_if(arriving_, [this](std::size_t place) {
    int is_done = 0;
    check(MPI_Test(&incoming_[place].request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done != 0) received_.push_back(incoming_[place].letter->view());
    return is_done != 0;
  });
}

std::vector<int> Inbox::arriving_from() const {
  std::vector<int> ranks;
  for (const std::size_t place : arriving_) ranks.push_back(incoming_[place].letter->from);
  return ranks;
}

void Inbox::order() {
  received_.clear();  // a large letter may have come later than a smaller one behind it
  for (const Incoming& incoming : incoming_) received_.push_back(incoming.letter->view());
  order_by_sender(received_);
}

void Inbox::close() {
  finish();
  for (const std::size_t place : arriving_)
    world_->adopt({incoming_[place].request}, std::move(incoming_[place].letter->memory));
}

void Inbox::leak() {
  for (Incoming& incoming : incoming_) incoming.letter->memory.leak();
}

}  // namespace kplan::transport::mpi_backend
