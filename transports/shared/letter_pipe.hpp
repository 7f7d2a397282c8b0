#pragma once
// The ends of a pipe that carries letters, exchange by exchange: one chunk or more a letter, then the pieces of its
// body, then the word that this was all from this sender.

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kplan/transport.hpp"
#include "transports/letter.hpp"
#include "transports/shared/distance.hpp"
#include "transports/shared/pipe.hpp"

namespace kplan::transport {

/// How letters go through the pipes of a rank.
struct LetterWays {
  std::size_t chunk_bytes = 0;         ///< the same on all ranks
  std::size_t piece_bytes = 0;         ///< of bodies in one chunk; 0: letters have none
  bool share_cores = false;            ///< the ranks
  std::size_t non_temporal_bytes = 0;  ///< letters of so many and more go past the caches where they are far; 0: none
};

/// What has been received in an exchange.
struct ReceivedLetters {
  std::vector<ReceivedLetter> letters;
  LetterList kept;  ///< those of them that do not lie in a pipe

  void keep(LetterPtr letter);
  void clear(LetterPool& pool) {
    letters.clear();
    while (!kept.is_empty()) pool.give(kept.pop());
  }
};

/// Memory that is being copied, region by region.
template <class Byte>
class Regions {
 public:
  Regions() = default;
  explicit Regions(std::span<const std::span<Byte>> regions) : left_(regions) {}

  /// Calls f(memory, packed, bytes) for each part of the next bytes, `packed` of one behind that of the other.
  template <class F>
  void go(std::byte* packed, std::size_t bytes, const F& f) {
    while (bytes > 0 && !left_.empty()) {
      const std::span<Byte> region = left_.front().subspan(at_);
      const std::size_t part = std::min(bytes, region.size());
      if (part > 0) f(region.data(), packed, part);
      packed += part;
      bytes -= part;
      at_ += part;
      if (part == region.size()) left_ = left_.subspan(1), at_ = 0;
    }
  }

 private:
  std::span<const std::span<Byte>> left_;
  std::size_t at_ = 0;  ///< bytes of the first that are done
};

class LetterSender {
 public:
  LetterSender(PipeMemory memory, std::shared_ptr<Distance> distance, const LetterWays& ways)
      : pipe_(std::move(memory), ways.chunk_bytes, ways.share_cores), distance_(std::move(distance)), ways_(ways) {}

  /// See SparseExchange::room.
  std::byte* room(std::size_t bytes) {
    if (bytes > ways_.chunk_bytes || has_waiting()) return nullptr;
    std::byte* const memory = pipe_.free(bytes);
    return memory && !goes_past_caches(memory, bytes) ? memory : nullptr;
  }
  /// Begins an exchange in which these are sent, which must stay. Receivers that do not `expect` them are told, too,
  /// that there are none.
  void begin(std::span<const OutgoingLetter> letters, bool are_expected) {
    letters_ = letters;
    are_expected_ = are_expected;
    sent_bytes_ = body_left_ = 0;
    put_before_ = pipe_.put_count();
    is_done_ = are_expected && letters.empty();
  }
  /// Sends as much as there is room for.
  void push(LetterPool& pool);
  /// Sends the letters that wait as copies, which go before all others; whether all have gone.
  bool send_waiting(LetterPool& pool) { return waiting_.is_empty() || send_copies(pool); }
  bool has_waiting() const { return !waiting_.is_empty(); }
  /// Whether all has gone, or waits as a copy.
  bool is_done() const { return is_done_; }
  /// The receiver has begun the exchange under way, too, and so handed back all chunks of those before.
  void note_begun() { pipe_.note_released(put_before_); }

 private:
  /// Of what goes into memory that the pipe has given.
  bool goes_past_caches(std::byte* memory, std::size_t bytes) {
    return ways_.non_temporal_bytes > 0 && bytes >= ways_.non_temporal_bytes && bytes > PipeSender::most_short &&
           distance_->is_far(pipe_.is_worn() ? memory : nullptr, bytes);
  }
  void write(std::byte* memory, const std::byte* from, std::size_t bytes);
  bool send_copies(LetterPool& pool);
  bool push_chunk();
  bool push_piece();
  void begin_body(std::span<const std::span<const std::byte>> regions);
  bool can_wait() const;

  PipeSender pipe_;
  std::shared_ptr<Distance> distance_;
  LetterWays ways_;
  LetterList waiting_;
  std::span<const OutgoingLetter> letters_;  ///< of the exchange under way that have not gone
  std::size_t sent_bytes_ = 0;               ///< of the first of them
  Regions<const std::byte> body_;            ///< that is under way
  std::size_t body_bytes_ = 0, body_left_ = 0;
  std::uint64_t put_before_ = 0;  ///< chunks of earlier exchanges
  bool are_expected_ = false, is_done_ = true;
};

class LetterReceiver {
 public:
  LetterReceiver(int from, PipeMemory memory, const LetterWays& ways)
      : from_(from), pipe_(std::move(memory), ways.chunk_bytes) {}

  /// Begins an exchange in which that rank sends something, if only that there is nothing, or does not.
  void begin(bool sends) {
    give_back();
    has_ended_ = !sends;
    has_body_ = is_placed_ = false;
  }
  /// Takes what has come. `may_be_placed`: a body without a place waits for one, instead of being kept.
  void pull(ReceivedLetters& to, LetterPool& pool, bool may_be_placed) {
    while (!has_ended_) {
      Chunk* const chunk = pipe_.arrived();
      if (!chunk || !take(*chunk, to, pool, may_be_placed)) return;
    }
  }
  void place_body(std::span<const std::span<std::byte>> regions, LetterPool& pool);
  /// Hands back the letter that lies in the pipe.
  void give_back() {
    if (std::exchange(is_kept_, false)) pipe_.release();
  }

  /// Whether all but bodies is here.
  bool have_letters_come() const { return has_ended_ || has_body_; }
  bool has_ended() const { return has_ended_; }
  /// Whether there is a body without a place.
  bool waits_for_place() const { return has_body_ && !is_placed_; }

 private:
  bool take(Chunk& chunk, ReceivedLetters& to, LetterPool& pool, bool may_be_placed);
  bool take_letter(Chunk& chunk, ReceivedLetters& to, LetterPool& pool);
  bool take_piece(Chunk& chunk, LetterPool& pool, bool may_be_placed);
  void put_together(Chunk& chunk, LetterPool& pool);

  int from_;
  PipeReceiver pipe_;
  LetterPtr together_;  ///< a letter that is coming in chunks, or a body without a place
  std::size_t come_bytes_ = 0;
  Regions<std::byte> place_;  ///< of the body
  bool has_body_ = false, is_placed_ = false;
  bool is_kept_ = false;  ///< the last chunk, where it lies
  bool has_ended_ = true;
};

}  // namespace kplan::transport
