// How it works: a cursor goes through the calls of a message unit by unit. Units that lie within the bytes at hand are
// run there, as many together as there are; one that goes beyond them is run on a bounce buffer, of which the pieces
// take, or fill, one part after the other. Bytes between the calls' shares only align them. In front of each piece, on
// a line of its own, stands what it is.
#include "engine/runtime/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace kplan {
namespace {

enum class Head : std::uint64_t { piece = 1, whole = 2, rest = 3 };

}  // namespace

bool MessageCursor::serves(const std::vector<ReadyCall>& calls) {
  std::int64_t at = 0;
  for (const ReadyCall& call : calls) {
    const auto& units = call.units();
    if (!units || units->first_byte < at) return false;
    at = units->first_byte + units->unit_bytes * units->count;
  }
  return true;
}

void MessageCursor::reserve(const std::vector<ReadyCall>& calls) {
  std::int64_t largest = 0;
  for (const ReadyCall& call : calls) largest = std::max(largest, call.units()->unit_bytes);
  if (largest > 1) bounce_.resize(static_cast<std::size_t>(largest));
}

const ReadyCall* MessageCursor::go(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                   std::byte* bytes, std::size_t count, bool packs) {
  const ReadyCall* faulty = nullptr;
  auto left = static_cast<std::int64_t>(count);
  const auto advance = [&](std::int64_t n) {
    bytes += n;
    left -= n;
    at_ += n;
  };
  while (left > 0) {
    if (next_call_ == calls.size()) {
      advance(left);
      break;
    }
    ReadyCall& call = calls[next_call_];
    const ReadyCall::Units& units = *call.units();
    if (next_unit_ == units.count) {
      ++next_call_;
      next_unit_ = 0;
      continue;
    }
    if (at_ < units.first_byte) {
      advance(std::min(left, units.first_byte - at_));
      continue;
    }
    const std::int64_t whole = in_bounce_ > 0 ? 0 : std::min(units.count - next_unit_, left / units.unit_bytes);
    if (whole > 0) {
      if (call.run_units(memory, bytes, next_unit_, next_unit_ + whole) != 0) faulty = &call;
      next_unit_ += whole;
      advance(whole * units.unit_bytes);
      continue;
    }
    if (packs && in_bounce_ == 0 && call.run_units(memory, bounce_.data(), next_unit_, next_unit_ + 1) != 0)
      faulty = &call;
    const std::int64_t part = std::min(left, units.unit_bytes - in_bounce_);
    if (packs) std::memcpy(bytes, bounce_.data() + in_bounce_, static_cast<std::size_t>(part));
    else std::memcpy(bounce_.data() + in_bounce_, bytes, static_cast<std::size_t>(part));
    in_bounce_ += part;
    advance(part);
    if (in_bounce_ < units.unit_bytes) continue;
    if (!packs && call.run_units(memory, bounce_.data(), next_unit_, next_unit_ + 1) != 0) faulty = &call;
    in_bounce_ = 0;
    ++next_unit_;
  }
  return faulty;
}

const ReadyCall* MessageCursor::pack_non_temporal(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                                  std::byte* bytes, std::size_t count) {
  constexpr std::size_t part_bytes = 8192;
  alignas(64) std::byte part[part_bytes];
  const ReadyCall* faulty = nullptr;
  while (count > 0) {
    const std::size_t now = std::min(part_bytes, count);
    if (const ReadyCall* call = go(calls, memory, part, now, /*packs=*/true)) faulty = call;
    transport::copy_non_temporal(bytes, part, now);
    bytes += now;
    count -= now;
  }
  return faulty;
}

const ReadyCall* OutgoingPieces::advance(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory) {
  // One slot stays free, to say that the rest comes whole.
  std::byte* const slot = channel->send_slot(next_ + 1) ? channel->send_slot(next_) : nullptr;
  if (!slot) {
    ++vain_looks_;
    return nullptr;
  }
  vain_looks_ = 0;
  const std::size_t count = std::min(left_, piece_bytes_);
  const Stores how = stores();
  const Head head = Head::piece;
  std::memcpy(slot, &head, sizeof head);
  const ReadyCall* faulty = cursor_.pack(calls, memory, slot + piece_head_bytes, count, how);
  channel->put(next_++, piece_head_bytes + count);
  left_ -= count;
  return faulty;
}

const ReadyCall* OutgoingPieces::pack_rest(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                           std::byte* slot) {
  std::byte* const note = channel->send_slot(next_);
  if (!note) return nullptr;
  const Stores how = stores();
  const Head head = Head::rest;
  std::memcpy(note, &head, sizeof head);
  const ReadyCall* faulty = cursor_.pack(calls, memory, slot, left_, how);
  channel->put(next_++, sizeof head);
  left_ = 0;
  return faulty;
}

bool OutgoingPieces::tell_whole() {
  std::byte* const slot = channel->send_slot(next_);
  if (!slot) return false;
  const Head head = Head::whole;
  std::memcpy(slot, &head, sizeof head);
  channel->put(next_++, sizeof head);
  return true;
}

/// The next bytes of the message; the last ones make it ready for the next message.
const ReadyCall* IncomingPieces::take(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                      const std::byte* bytes, std::size_t count) {
  const ReadyCall* const faulty = cursor_.unpack(calls, memory, bytes, count);
  taken_ += count;
  if (taken_ < bytes_) return faulty;
  taken_ = 0;
  cursor_.restart();
  return faulty;
}

IncomingPieces::Came IncomingPieces::advance(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                             const ReadyCall*& faulty) {
  const std::byte* const slot = channel->arrived(next_);
  if (!slot) return Came::nothing;
  Head head{};
  std::memcpy(&head, slot, sizeof head);
  if (head == Head::piece) {
    if (const ReadyCall* call = take(calls, memory, slot + piece_head_bytes, std::min(bytes_ - taken_, piece_bytes_)))
      faulty = call;
  }
  channel->release(next_++);
  if (head == Head::whole) return Came::whole;
  if (head == Head::piece) return taken_ == 0 ? Came::last_piece : Came::piece;
  awaits_rest_ = true;
  return Came::rest;
}

const ReadyCall* IncomingPieces::take_rest(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                           const std::byte* bytes) {
  awaits_rest_ = false;
  return take(calls, memory, bytes, bytes_ - taken_);
}

}  // namespace kplan
