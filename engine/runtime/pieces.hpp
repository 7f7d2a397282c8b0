#pragma once
// Messages that travel in pieces, so that the receiver unpacks one while the sender packs the next, and both work on
// memory that stays in their caches: a ring of a few small slots instead of two slots for whole messages. Which way a
// message goes, whole or in pieces, the sender decides at every run, and the receiver sees. A receiver that takes no
// pieces does not hold the sender up for long: the rest goes as a whole message then.
//
// Packing some bytes at a time also serves slots whose lines are far: the bytes are made in memory that stays in the
// nearest cache, and copied from there in the way that suits, whatever the kernels' stores look like.

#include <compare>
#include <memory>
#include <optional>
#include <vector>

#include "engine/runtime/ready_call.hpp"
#include "kplan/transport.hpp"

namespace kplan {

/// So many looks for a receiver in vain, about a millisecond, and a message goes as a whole, from its slot.
inline constexpr unsigned most_vain_looks = 1400;

/// Whether a message is so long that it may go in pieces of so many bytes; 0: none may.
inline bool may_go_in_pieces(std::size_t bytes, std::size_t piece_bytes) {
  return piece_bytes > 0 && bytes >= 2 * piece_bytes;
}

/// How far a message is packed or unpacked, when that is done some bytes at a time.
class MessageCursor {
 public:
  /// Whether the calls can be made that way: they go through the message from its first byte to its last.
  static bool serves(const std::vector<ReadyCall>& calls);

  void restart() { next_call_ = 0, next_unit_ = 0, at_ = 0, in_bounce_ = 0; }
  /// Packs the next bytes of the message. Returns a call that met a zero divisor, or null. At most so many bytes as are
  /// left.
  const ReadyCall* pack(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, std::byte* bytes,
                        std::size_t count, transport::Stores stores) {
    return stores == transport::Stores::cached ? go(calls, memory, bytes, count, Way::pack)
                                               : pack_apart(calls, memory, bytes, count, stores);
  }
  /// Unpacks the next bytes of the message; `are_far`: their lines.
  const ReadyCall* unpack(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, const std::byte* bytes,
                          std::size_t count, bool are_far = false) {
    ask_for_beginning(bytes, count);
    // Kernels that unpack only read the message.
    return go(calls, memory, const_cast<std::byte*>(bytes), count, are_far ? Way::unpack_ahead : Way::unpack);
  }
  /// Makes room for the units that lie in two pieces, so that no run allocates.
  void reserve(const std::vector<ReadyCall>& calls);

 private:
  std::size_t copy_block(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, std::byte* bytes,
                         std::size_t count, transport::Stores stores);
  const ReadyCall* pack_apart(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, std::byte* bytes,
                              std::size_t count, transport::Stores stores);
  enum class Way : std::uint8_t { pack, unpack, unpack_ahead };
  const ReadyCall* go(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, std::byte* bytes,
                      std::size_t count, Way way);

  std::size_t next_call_ = 0;
  std::int64_t next_unit_ = 0;
  std::int64_t at_ = 0;            ///< bytes of the message that are done
  std::vector<std::byte> bounce_;  ///< one unit that lies in several pieces
  std::int64_t in_bounce_ = 0;     ///< bytes of it that were moved
};

/// The ring of a few small slots through which long messages go from one rank to another, one after the other, in the
/// order of their statements. It is small so that it takes no more of the caches than it must.
class PieceStream {
 public:
  explicit PieceStream(std::size_t piece_bytes) : piece_bytes_(piece_bytes) {}
  static constexpr int slots = 6;
  /// What a slot must hold beside the piece.
  static constexpr std::size_t head_bytes = 64;

  std::unique_ptr<transport::Channel> channel;
  std::size_t piece_bytes() const { return piece_bytes_; }

 private:
  friend class OutgoingPieces;
  friend class IncomingPieces;
  /// Which message a piece belongs to.
  struct Head {
    std::int64_t run = 0, statement = 0;
    auto operator<=>(const Head&) const = default;
  };
  /// What stands in front of a piece.
  struct Front {
    Head head;
    bool is_tried = false;  ///< such messages go whole in other runs
  };
  static_assert(sizeof(Front) <= head_bytes);

  std::size_t piece_bytes_;
  std::uint64_t next_ = 0;                       ///< piece
  const class OutgoingPieces* sends_ = nullptr;  ///< whose message has begun and is not sent
};

/// When messages go in pieces.
enum class InPieces : std::uint8_t {
  always,
  never,
  tried,  ///< in runs in which those that are tried do
};

/// The sending end of a message in pieces.
class OutgoingPieces {
 public:
  OutgoingPieces(std::size_t bytes, std::shared_ptr<PieceStream> stream, int statement)
      : bytes_(bytes), stream_(std::move(stream)), at_{0, statement} {}
  InPieces when = InPieces::never;
  bool may_be_far = false;  ///< the slots may be

  /// Whether the sender can do it; else it never does.
  static bool serves(const std::vector<ReadyCall>& calls) { return MessageCursor::serves(calls); }
  void reserve(const std::vector<ReadyCall>& calls) {
    if (serves(calls)) cursor_.reserve(calls);
  }
  /// Whether it is of many pieces, so that little is left to wait for at its two ends.
  bool are_many() const { return bytes_ >= many_pieces * stream_->piece_bytes(); }
  /// Every run begins here, whichever way the message goes.
  void begin_run() { ++at_.run; }
  /// Whether this run's message goes in pieces; `tried_do`: those that are tried.
  bool are_better(bool tried_do) const { return when == InPieces::always || (when == InPieces::tried && tried_do); }
  void begin() { left_ = bytes_, vain_looks_ = 0, cursor_.restart(); }
  std::size_t left() const { return left_; }  ///< bytes that are not packed yet
  /// Packs and sends the next piece if there is room for it, and all that goes before has been sent. Returns a
  /// call that met a zero divisor, or null.
  const ReadyCall* advance(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory);
  /// Whether there was no room many times in a row; then the rest had better go to the whole messages' channel.
  bool is_held_up() const { return vain_looks_ > most_vain_looks; }
  /// Packs all that is left into `slot`.
  const ReadyCall* pack_rest(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, std::byte* slot);

 private:
  transport::Stores stores() {
    return may_be_far ? stream_->channel->best_stores(stream_->next_) : transport::Stores::cached;
  }

  static constexpr std::size_t many_pieces = 8;
  std::size_t bytes_;
  std::shared_ptr<PieceStream> stream_;
  PieceStream::Head at_;
  std::size_t left_ = 0;
  unsigned vain_looks_ = 0;
  MessageCursor cursor_;
};

/// The receiving end, where the calls can be made piece by piece.
class IncomingPieces {
 public:
  IncomingPieces(std::size_t bytes, std::shared_ptr<PieceStream> stream, int statement)
      : bytes_(bytes), stream_(std::move(stream)), at_{0, statement} {}

  void reserve(const std::vector<ReadyCall>& calls) { cursor_.reserve(calls); }
  /// Every run begins here, whichever way the message comes.
  void begin_run() { ++at_.run; }
  /// Whether a piece of this run's message is there.
  bool has_arrived() {
    const std::optional<PieceStream::Front> front = first();
    return front && front->head == at_;
  }
  enum class Came : std::uint8_t { nothing, piece, last_piece };
  /// Takes the next piece if it has come.
  Came advance(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, const ReadyCall*& faulty);
  /// Whether no piece of this run's message will come any more, once the whole messages' channel has brought one: it is
  /// this run's message, or what is left of it.
  bool have_all_come() {
    const std::optional<PieceStream::Front> front = first();
    return !front || front->head > at_;
  }
  /// Whether the sender tries which way the message had better go, as far as that is known from pieces.
  bool are_tried() const { return are_tried_; }
  /// Whether some of the message has come in pieces, and the rest is still to come.
  bool awaits_rest() const { return taken_ > 0; }
  /// Of the message, what has been taken, and what is left.
  std::size_t taken() const { return taken_; }
  std::size_t left() const { return bytes_ - taken_; }
  std::size_t piece_bytes() const { return stream_->piece_bytes(); }
  /// Takes the next bytes of the message; the last ones make it ready for the next message. Returns a call that met a
  /// zero divisor, or null.
  const ReadyCall* take(std::vector<ReadyCall>& calls, const std::vector<BoundMemory>& memory, const std::byte* bytes,
                        std::size_t count, bool are_far = false);

 private:
  /// Of the piece that comes next, of whichever message it is.
  std::optional<PieceStream::Front> first();

  std::size_t bytes_;
  std::shared_ptr<PieceStream> stream_;
  PieceStream::Head at_;
  std::size_t taken_ = 0;
  bool are_tried_ = false;
  MessageCursor cursor_;
};

}  // namespace kplan
