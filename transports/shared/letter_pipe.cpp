// How it works: a letter that fits in a chunk and is the last from its sender is read where it lies, until the next
// begin; others are put together in memory of their own. Only where receivers know their sources can a sender find both
// slots in use: then a letter that fits waits as a copy.
//
// A body follows its letter in pieces. While they have no place they stay in the pipe, but where this rank waits for
// something else, which may need what the sender does next: then they are put together in memory, too.
#include "transports/shared/letter_pipe.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace kplan::transport {
namespace {

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace

void ReceivedLetters::keep(LetterPtr letter) {
  letters.push_back(letter->view());
  kept.push(std::move(letter));
}

[[gnu::hot]] void LetterSender::write(std::byte* memory, const std::byte* from, std::size_t bytes) {
  if (bytes == 0 || from == memory) return;
  if (goes_past_caches(memory, bytes)) copy_to_slot(memory, from, bytes, Stores::non_temporal);
  else std::memcpy(memory, from, bytes);
}

bool LetterSender::send_copies(LetterPool& pool) {
  while (LetterPtr letter = waiting_.pop()) {
    std::byte* const memory = pipe_.free(letter->bytes);
    if (!memory) {
      waiting_.push_front(std::move(letter));
      return false;
    }
    write(memory, letter->data(), letter->bytes);
    pipe_.put(letter->bytes, letter->bytes, Holds::letter, /*is_last=*/true);
    pool.give(std::move(letter));
  }
  return true;
}

[[gnu::hot]] void LetterSender::push(LetterPool& pool) {
  if (send_waiting(pool))
    while (!is_done_ && (body_left_ > 0 ? push_piece() : push_chunk())) {
    }
  while (!is_done_ && can_wait()) {
    waiting_.push(pool.copy(letters_[0].bytes));
    letters_ = letters_.subspan(1);
    is_done_ = letters_.empty();
  }
}

/// Whether the next letter can wait as a copy.
bool LetterSender::can_wait() const {
  return are_expected_ && sent_bytes_ == 0 && body_left_ == 0 && letters_[0].bytes.size() <= ways_.chunk_bytes &&
         letters_[0].body.empty();
}

/// Sends the next chunk of a letter, or that there is none; whether there was room for it.
[[gnu::hot]] bool LetterSender::push_chunk() {
  static constexpr OutgoingLetter none;
  const OutgoingLetter& letter = letters_.empty() ? none : letters_[0];
  const std::size_t count = std::min(ways_.chunk_bytes, letter.bytes.size() - sent_bytes_);
  std::byte* const memory = pipe_.free(count);
  if (!memory) return false;
  write(memory, letter.bytes.data() + sent_bytes_, count);
  Holds holds = Holds::nothing;
  if (!letters_.empty()) {
    holds = letter.body.empty() ? Holds::letter : Holds::letter_with_body;
    sent_bytes_ += count;
    if (sent_bytes_ == letter.bytes.size()) {
      sent_bytes_ = 0;
      letters_ = letters_.subspan(1);
      if (!letter.body.empty()) [[unlikely]]
        begin_body(letter.body);
    }
  }
  is_done_ = letters_.empty() && body_left_ == 0;
  pipe_.put(count, letter.bytes.size(), holds, is_done_);
  return true;
}

void LetterSender::begin_body(std::span<const std::span<const std::byte>> regions) {
  assert(letters_.empty());
  body_ = Regions(regions);
  body_bytes_ = 0;
  for (const std::span<const std::byte> region : regions) body_bytes_ += region.size();
  body_left_ = body_bytes_;
}

/// Sends the next piece of a body; whether there was room for it.
bool LetterSender::push_piece() {
  const std::size_t count = std::min(ways_.piece_bytes, body_left_);
  std::byte* const memory = pipe_.free(count);
  if (!memory) return false;
  const Stores stores = goes_past_caches(memory, count) ? Stores::non_temporal : Stores::cached;
  body_.go(memory, count,
           [&](const std::byte* from, std::byte* to, std::size_t bytes) { copy_to_slot(to, from, bytes, stores); });
  body_left_ -= count;
  is_done_ = body_left_ == 0;
  pipe_.put(count, body_bytes_, Holds::body, is_done_);
  return true;
}

/// Takes the next chunk; false where it waits for a place.
[[gnu::hot]] bool LetterReceiver::take(Chunk& chunk, ReceivedLetters& to, LetterPool& pool, bool may_be_placed) {
  if (chunk.holds == Holds::body) {
    if (!take_piece(chunk, pool, may_be_placed)) return false;
  } else if (chunk.holds != Holds::nothing) {
    is_kept_ = take_letter(chunk, to, pool);
  }
  has_ended_ = chunk.is_last != 0;
  pipe_.take();
  if (!is_kept_) pipe_.release();
  return true;
}

/// Takes a chunk of a letter; whether it must stay where it is.
[[gnu::hot]] bool LetterReceiver::take_letter(Chunk& chunk, ReceivedLetters& to, LetterPool& pool) {
  if (chunk.is_last != 0 && chunk.bytes == chunk.whole_bytes) {
    to.letters.push_back({from_, {chunk.data(), chunk.bytes}});
    return true;
  }
  put_together(chunk, pool);
  if (come_bytes_ < together_->bytes) return false;
  has_body_ = chunk.holds == Holds::letter_with_body;
  to.keep(std::move(together_));
  return false;
}

/// Takes a piece of a body; false where it waits for a place.
bool LetterReceiver::take_piece(Chunk& chunk, LetterPool& pool, bool may_be_placed) {
  if (is_placed_) place_.go(chunk.data(), chunk.bytes, copy_bytes);
  else if (may_be_placed) return false;
  else put_together(chunk, pool);
  return true;
}

void LetterReceiver::put_together(Chunk& chunk, LetterPool& pool) {
  if (!together_) {
    together_ = pool.take(chunk.whole_bytes);
    together_->from = from_;
    come_bytes_ = 0;
  }
  std::memcpy(together_->data() + come_bytes_, chunk.data(), chunk.bytes);
  come_bytes_ += chunk.bytes;
}

void LetterReceiver::place_body(std::span<const std::span<std::byte>> regions, LetterPool& pool) {
  assert(waits_for_place());
  is_placed_ = true;
  place_ = Regions(regions);
  if (!together_) return;
  place_.go(together_->data(), come_bytes_, copy_bytes);
  pool.give(std::move(together_));
}

}  // namespace kplan::transport
