// How it works: a letter is matched by a probe that takes it off MPI's queue, which tells its size; the receive that
// follows gets memory of that size. Small letters have come by then, large ones are on their way from memory to memory.
// MPI matches those of one sender in the order in which they were sent, and so also the two parts of a longer letter
// that is expected: the next receive of a first part begins when the letter before has come.
#include "transports/mpi/inbox.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "transports/mpi/matched_message.hpp"

namespace kplan::transport::mpi_backend {

[[gnu::hot]] void Inbox::clear() {
  assert(!is_arriving());
  received_.clear();
  for (Incoming& incoming : incoming_)
    if (incoming.letter) pool_.give(std::move(incoming.letter));
  incoming_.clear();
}

void Inbox::take_own(std::span<const std::byte> bytes) {
  LetterPtr letter = pool_.copy(bytes, world_->rank());
  const ReceivedLetter view = letter->view();
  received_.push_back(view);
  incoming_.push_back({std::move(letter), view});
}

[[gnu::hot]] bool Inbox::match(int source, int tag) { return match_after(nullptr, source, tag); }

[[gnu::hot]] void Inbox::expect(int source, int tag) {
  Source& s = sources_[source];
  if (s.request == MPI_REQUEST_NULL) {
    const std::size_t bytes = first_message_.most;
    s.memory = SlotMemory(bytes, 1);
    check(MPI_Recv_init(s.memory.slot(0), static_cast<int>(bytes), MPI_BYTE, source, tag, world_->comm(), &s.request),
          "MPI_Recv_init");
  }
  start(*world_, &s.request);
  s.is_under_way = true;
}

[[gnu::hot]] bool Inbox::match_expected(int source, int tag) {
  Source& s = sources_[source];
  if (s.is_under_way) {
    int count = 0;
    MPI_Status status;
    if (!is_complete(*world_, &s.request, &status)) return false;
    s.is_under_way = false;
    check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    const auto bytes = static_cast<std::size_t>(count);
    if (!first_message_.has_rest(bytes)) {
      const ReceivedLetter view{source, {s.memory.slot(0), bytes}};
      received_.push_back(view);
      incoming_.push_back({nullptr, view});
      return true;
    }
  }
  return match_after(&s, source, tag);
}

/// Takes what is there, as all of a letter or behind its first bytes.
[[gnu::hot]] bool Inbox::match_after(const Source* first, int source, int tag) {
  std::optional<MatchedMessage> rest = match_message(*world_, source, tag);
  if (!rest) return false;
  const std::size_t bytes_before = first ? first_message_.unasked : 0;
  LetterPtr letter = pool_.take(bytes_before + rest->bytes);
  letter->from = rest->from;
  if (first) std::memcpy(letter->data(), first->memory.slot(0), bytes_before);
  const ReceivedLetter view = letter->view();
  incoming_.push_back({std::move(letter), view});
  arriving_.push_back(incoming_.size() - 1);
  Incoming& incoming = incoming_.back();
  rest->receive(incoming.letter->data() + bytes_before, world_->limits().max_count, &incoming.request);
  return true;
}

[[gnu::hot]] void Inbox::finish() {
  std::erase_if(arriving_, [this](std::size_t place) {
    if (!is_complete(*world_, &incoming_[place].request)) return false;
    received_.push_back(incoming_[place].view);
    return true;
  });
}

std::vector<int> Inbox::arriving_from() const {
  std::vector<int> ranks;
  for (const std::size_t place : arriving_) ranks.push_back(incoming_[place].view.from);
  return ranks;
}

[[gnu::hot]] void Inbox::order() {
  received_.clear();  // a large letter may have come later than a smaller one behind it
  for (const Incoming& incoming : incoming_) received_.push_back(incoming.view);
  order_by_sender(received_);
}

void Inbox::close() {
  finish();
  for (const std::size_t place : arriving_)
    world_->adopt({incoming_[place].request}, std::move(incoming_[place].letter->memory));
  arriving_.clear();
  for (auto& [rank, source] : sources_) {
    if (source.is_under_way && !is_complete(*world_, &source.request)) {
      check(MPI_Cancel(&source.request), "MPI_Cancel");
      if (!is_complete(*world_, &source.request)) {
        world_->taint();  // a letter comes that nobody takes
        world_->adopt({std::exchange(source.request, MPI_REQUEST_NULL)}, std::move(source.memory));
        continue;
      }
    }
    source.is_under_way = false;
    free_request(&source.request);
  }
}

void Inbox::leak() {
  for (Incoming& incoming : incoming_)
    if (incoming.letter) incoming.letter->memory.leak();
  for (auto& [rank, source] : sources_) source.memory.leak();
}

}  // namespace kplan::transport::mpi_backend
