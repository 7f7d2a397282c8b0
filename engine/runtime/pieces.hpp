#pragma once
// Messages that travel in pieces, so that the receiver unpacks one while the sender packs the next, and both work on
// memory that stays in their caches: a ring of a few small slots instead of two slots for whole messages. Which way a
// message goes, whole or in pieces, the sender decides at every run; the first slot of each run in the ring tells. A
// receiver that takes no pieces does not hold the sender up for long: the rest goes as a whole message then.
//
// Packing some bytes at a time also serves non-temporal stores: the bytes are made in memory that stays in the nearest
// cache, and copied past the caches from there, whatever the kernels' stores look like.

#include <memory>
#include <vector>

#include "engine/runtime/ready_call.hpp"
#include "kplan/transport.hpp"

namespace kplan {

/// How bytes are written to a slot.
enum class Stores : std::uint8_t { cached, non_temporal };

/// How far a message is packed or unpacked, when that is done some bytes at a time.
class MessageCursor {
 public:
  /// Whether the calls can be made that way: they go through the message from its first byte to its last.
  static bool serves(const std::vector<ReadyCall>& calls);

  void restart() { next_call_ = 0, next_unit_ = 0, at_ = 0, in_bounce_ = 0; }
  /// Packs the next bytes of the message. Returns a call that met a zero divisor, or null. At most so many bytes as are
  /// left.
  const ReadyCall* pack(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, std::byte* bytes,
                        std::size_t count, Stores stores) {
    return stores == Stores::cached ? go(calls, memory, bytes, count, /*packs=*/true)
                                    : pack_non_temporal(calls, memory, bytes, count);
  }
  /// Unpacks the next bytes of the message.
  const ReadyCall* unpack(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, const std::byte* bytes,
                          std::size_t count) {
    // Kernels that unpack only read the message.
    return go(calls, memory, const_cast<std::byte*>(bytes), count, /*packs=*/false);
  }
  /// Makes room for the units that lie in two pieces, so that no run allocates.
  void reserve(const std::vector<ReadyCall>& calls);

 private:
  const ReadyCall* pack_non_temporal(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                                     std::byte* bytes, std::size_t count);
  const ReadyCall* go(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, std::byte* bytes,
                      std::size_t count, bool packs);

  std::size_t next_call_ = 0;
  std::int64_t next_unit_ = 0;
  std::int64_t at_ = 0;            ///< bytes of the message that are done
  std::vector<std::byte> bounce_;  ///< one unit that lies in several pieces
  std::int64_t in_bounce_ = 0;     ///< bytes of it that were moved
};

/// What a slot of a ring of pieces must hold beside the piece.
inline constexpr std::size_t piece_head_bytes = 64;

/// The sending end of a message in pieces.
class OutgoingPieces {
 public:
  OutgoingPieces(std::size_t bytes, std::size_t piece_bytes) : bytes_(bytes), piece_bytes_(piece_bytes) {}
  std::unique_ptr<transport::Channel> channel;
  bool may_be_far = false;  ///< pieces may go past the caches

  /// Whether the sender can do it; else it never does.
  static bool serves(const std::vector<ReadyCall>& calls) { return MessageCursor::serves(calls); }
  void reserve(const std::vector<ReadyCall>& calls) {
    if (serves(calls)) cursor_.reserve(calls);
  }
  void begin() { left_ = bytes_, vain_looks_ = 0, cursor_.restart(); }
  /// Tells the receiver that this run's message comes whole; false where there is no room to.
  bool tell_whole();
  std::size_t left() const { return left_; }  ///< bytes that are not packed yet
  /// Packs and sends the next piece if there is room for it. Returns a call that met a zero divisor, or null.
  const ReadyCall* advance(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory);
  /// Whether there was no room many times in a row; then the rest had better go to the whole messages' channel.
  bool is_held_up() const { return vain_looks_ > most_vain_looks; }
  /// Packs all that is left into `slot`, and tells the receiver; if that is possible, which left() shows.
  const ReadyCall* pack_rest(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, std::byte* slot);

 private:
  Stores stores() { return may_be_far && channel->goes_past_caches(next_) ? Stores::non_temporal : Stores::cached; }

  std::size_t bytes_, piece_bytes_;
  static constexpr unsigned most_vain_looks = 1400;  ///< about a millisecond
  std::size_t left_ = 0;
  std::uint64_t next_ = 0;
  unsigned vain_looks_ = 0;
  MessageCursor cursor_;
};

/// The receiving end, where the calls can be made piece by piece.
class IncomingPieces {
 public:
  IncomingPieces(std::size_t bytes, std::size_t piece_bytes) : bytes_(bytes), piece_bytes_(piece_bytes) {}
  std::unique_ptr<transport::Channel> channel;

  void reserve(const std::vector<ReadyCall>& calls) { cursor_.reserve(calls); }
  bool has_arrived() { return channel->arrived(next_) != nullptr; }
  enum class Came : std::uint8_t { nothing, piece, last_piece, whole, rest };
  /// Takes the next piece if it has come; `whole` and `rest`: the message, or what is left of it, comes on the other
  /// channel.
  Came advance(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, const ReadyCall*& faulty);
  /// Whether the rest is still to come.
  bool awaits_rest() const { return awaits_rest_; }
  /// Takes the rest. Returns a call that met a zero divisor, or null.
  const ReadyCall* take_rest(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory,
                             const std::byte* bytes);

 private:
  const ReadyCall* take(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, const std::byte* bytes,
                        std::size_t count);

  std::size_t bytes_, piece_bytes_;
  std::size_t taken_ = 0;
  bool awaits_rest_ = false;
  std::uint64_t next_ = 0;
  MessageCursor cursor_;
};

}  // namespace kplan
