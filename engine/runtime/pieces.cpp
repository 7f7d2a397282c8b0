// How it works: a cursor goes through the calls of a message unit by unit. Units that lie within the bytes at hand are
// run there, as many together as there are; one that goes beyond them is run on a bounce buffer, of which the pieces
// take, or fill, one part after the other. Bytes between the calls' shares only align them. In front of each piece, on
// a line of its own, stands what it is.
#include "engine/runtime/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace kplan {

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
                                   std::byte* bytes, std::size_t count, Way way) {
  const bool packs = way == Way::pack;
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
      const auto run = way == Way::unpack_ahead ? &ReadyCall::run_units_ahead : &ReadyCall::run_units;
      if ((call.*run)(memory, bytes, next_unit_, next_unit_ + whole) != 0) faulty = &call;
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

/// The next bytes, as many as lie in one block if these are enough; how many.
std::size_t MessageCursor::copy_block(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                      std::byte* bytes, std::size_t count, transport::Stores stores) {
  constexpr std::int64_t enough = 1024;
  if (next_call_ == calls.size()) return 0;
  const ReadyCall& call = calls[next_call_];
  const ReadyCall::Units& units = *call.units();
  const std::int64_t now = std::min(static_cast<std::int64_t>(count), units.count - next_unit_);
  if (now < enough || at_ < units.first_byte) return 0;
  if (!call.copy_units(memory, bytes, next_unit_, next_unit_ + now, stores)) return 0;
  next_unit_ += now;
  at_ += now;
  return static_cast<std::size_t>(now);
}

const ReadyCall* MessageCursor::pack_apart(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                           std::byte* bytes, std::size_t count, transport::Stores stores) {
  constexpr std::size_t part_bytes = 8192;
  alignas(64) std::byte part[part_bytes];
  const ReadyCall* faulty = nullptr;
  while (count > 0) {
    std::size_t now = copy_block(calls, memory, bytes, count, stores);
    if (now == 0) {
      now = std::min(part_bytes, count);
      if (const ReadyCall* call = go(calls, memory, part, now, Way::pack)) faulty = call;
      transport::copy_to_slot(bytes, part, now, stores);
    }
    bytes += now;
    count -= now;
  }
  return faulty;
}

const ReadyCall* OutgoingPieces::advance(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory) {
  if (stream_->sends_ && stream_->sends_ != this) return nullptr;
  std::byte* const slot = stream_->channel->send_slot(stream_->next_);
  if (!slot) {
    ++vain_looks_;
    return nullptr;
  }
  vain_looks_ = 0;
  stream_->sends_ = this;
  const std::size_t count = std::min(left_, stream_->piece_bytes());
  const transport::Stores how = stores();
  const PieceStream::Front front{at_, when == InPieces::tried};
  std::memcpy(slot, &front, sizeof front);
  const ReadyCall* faulty = cursor_.pack(calls, memory, slot + PieceStream::head_bytes, count, how);
  stream_->channel->put(stream_->next_++, PieceStream::head_bytes + count);
  left_ -= count;
  if (left_ == 0) stream_->sends_ = nullptr;
  return faulty;
}

const ReadyCall* OutgoingPieces::pack_rest(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                           std::byte* slot) {
  const ReadyCall* const faulty = cursor_.pack(calls, memory, slot, left_, transport::Stores::cached);
  left_ = 0;
  stream_->sends_ = nullptr;
  return faulty;
}

const ReadyCall* IncomingPieces::take(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                      const std::byte* bytes, std::size_t count, bool are_far) {
  const ReadyCall* const faulty = cursor_.unpack(calls, memory, bytes, count, are_far);
  taken_ += count;
  if (taken_ < bytes_) return faulty;
  taken_ = 0;
  cursor_.restart();
  return faulty;
}

std::optional<PieceStream::Front> IncomingPieces::first() {
  const std::byte* const slot = stream_->channel->arrived(stream_->next_);
  if (!slot) return std::nullopt;
  PieceStream::Front front;
  std::memcpy(&front, slot, sizeof front);
  return front;
}

IncomingPieces::Came IncomingPieces::advance(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                             const ReadyCall*& faulty) {
  const std::optional<PieceStream::Front> front = first();
  if (!front || front->head != at_) return Came::nothing;
  are_tried_ = front->is_tried;
  const std::byte* const slot = stream_->channel->arrived(stream_->next_);
  if (const ReadyCall* call = take(calls, memory, slot + PieceStream::head_bytes,
                                   std::min(left(), stream_->piece_bytes()), stream_->channel->is_far(stream_->next_)))
    faulty = call;
  stream_->channel->release(stream_->next_++);
  return taken_ == 0 ? Came::last_piece : Came::piece;
}

}  // namespace kplan
