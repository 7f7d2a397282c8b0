#pragma once
// A pipe from one rank to another with which it shares memory: letters, in chunks, one after the other. Two slots: the
// receiver may keep one chunk where it lies while the next comes. Single producer, single consumer, as ring.hpp.
//
// A chunk begins with the line that says it is there, which a receiver that waits looks at again and again. So it is
// written last, and all at once: the bytes of a short chunk, which begin on that line, are made in memory of the
// sender's own and copied when it is put; those of others lie behind it. Long ones that do not fill their slots lie
// behind those before them, on lines that have left the caches of both cores, as in rings (best_ring_slots); not where
// ranks share cores.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace kplan::transport {

/// What is in a chunk.
enum class Holds : std::uint32_t {
  nothing,  ///< it only ends the exchange
  letter,
  letter_with_body,
  body,  ///< of the letter before
};

/// The first line of a chunk.
struct alignas(64) Chunk {
  std::atomic<std::uint64_t> word;  ///< one more than the number of the chunk that lies here
  std::uint64_t whole_bytes;        ///< of the whole letter, or body
  std::uint32_t bytes;              ///< of it in this chunk
  std::uint32_t offset_bytes;       ///< where they begin
  Holds holds;
  std::uint32_t is_last;      ///< in its exchange from this sender
  std::byte first_bytes[32];  ///< of a short one

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + offset_bytes; }
};

/// The memory of one pipe, all zeros before it is used, aligned to 64; kept alive by its owner.
struct PipeMemory {
  std::shared_ptr<void> owner;
  std::byte* base = nullptr;
};

/// Bytes of memory that a pipe takes, a multiple of 64.
constexpr std::size_t pipe_bytes(std::size_t chunk_bytes) {
  return 64 + 2 * ((sizeof(Chunk) + chunk_bytes + 63) / 64 * 64);
}

class PipeEnd {
 protected:
  static constexpr std::size_t line_bytes = 64;

  PipeEnd(PipeMemory memory, std::size_t chunk_bytes)
      : memory_(std::move(memory)), slot_bytes_((pipe_bytes(chunk_bytes) - line_bytes) / slots) {}
  Chunk& chunk(std::uint64_t number) const {
    return *reinterpret_cast<Chunk*>(memory_.base + line_bytes + number % slots * slot_bytes_);
  }
  std::atomic<std::uint64_t>& released() const { return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.base); }

  static constexpr std::uint64_t slots = 2;

 private:
  PipeMemory memory_;
  std::size_t slot_bytes_;
};

class PipeSender : PipeEnd {
 public:
  /// Chunks of more bytes are made where they are sent from.
  static constexpr std::size_t most_short = 480;

  PipeSender(PipeMemory memory, std::size_t chunk_bytes, bool share_cores)
      : PipeEnd(std::move(memory), chunk_bytes), turn_end_(share_cores ? 0 : chunk_bytes) {}
  /// Where to write the next chunk's bytes, so many; null while both slots are in use.
  std::byte* free(std::size_t bytes) {
    if (next_ >= released_ + slots) released_ = released().load(std::memory_order_acquire);
    if (next_ >= released_ + slots) return nullptr;
    if (bytes <= most_short) {
      offset_bytes_ = offsetof(Chunk, first_bytes);
      return short_;
    }
    const bool turns = bytes >= fewest_to_turn && turn_bytes_ + bytes <= turn_end_;
    offset_bytes_ = sizeof(Chunk) + (turns ? turn_bytes_ : 0);
    return reinterpret_cast<std::byte*>(&chunk(next_)) + offset_bytes_;
  }
  /// Whether the receiver has read the first line that free() gave for a chunk that is not short.
  bool is_worn() const { return offset_bytes_ < used_bytes_[next_ % slots]; }
  /// Chunks put so far.
  std::uint64_t put_count() const { return next_; }
  /// The receiver is known to have handed back that many: spares a look at its counter, a line that it writes.
  void note_released(std::uint64_t count) { released_ = std::max(released_, count); }
  /// Sends the bytes that lie where free(bytes) said, of a letter or body of so many.
  void put(std::size_t bytes, std::size_t whole_bytes, Holds holds, bool is_last) {
    Chunk& c = chunk(next_);
    if (bytes >= fewest_to_turn) {
      turn_bytes_ = (offset_bytes_ - sizeof(Chunk) + bytes + line_bytes - 1) / line_bytes * line_bytes;
    }
    if (bytes <= most_short) {
      constexpr std::size_t on_first_line = sizeof c.first_bytes;
      if (bytes > on_first_line)
        std::memcpy(reinterpret_cast<std::byte*>(&c + 1), short_ + on_first_line, bytes - on_first_line);
      std::memcpy(c.first_bytes, short_, on_first_line);
    }
    std::size_t& used_bytes = used_bytes_[next_ % slots];
    used_bytes = std::max(used_bytes, offset_bytes_ + bytes);
    c.whole_bytes = whole_bytes;
    c.bytes = static_cast<std::uint32_t>(bytes);
    c.offset_bytes = static_cast<std::uint32_t>(offset_bytes_);
    c.holds = holds;
    c.is_last = is_last ? 1 : 0;
    c.word.store(++next_, std::memory_order_release);
  }

 private:
  static constexpr std::size_t fewest_to_turn = 8192;
  std::size_t turn_end_;                ///< long chunks lie one behind the other up to here
  std::size_t offset_bytes_ = 0;        ///< of the next chunk's bytes
  std::size_t turn_bytes_ = 0;          ///< where the next long chunk begins behind the first line of its slot
  std::size_t used_bytes_[slots] = {};  ///< of each slot, up to where chunks have come
  std::uint64_t next_ = 0, released_ = 0;
  alignas(64) std::byte short_[most_short] = {};  ///< the bytes of a short chunk until it is put
};

class PipeReceiver : PipeEnd {
 public:
  PipeReceiver(PipeMemory memory, std::size_t chunk_bytes) : PipeEnd(std::move(memory), chunk_bytes) {}
  /// The next chunk, if it has come.
  Chunk* arrived() {
    Chunk& c = chunk(next_);
    if (c.word.load(std::memory_order_acquire) != next_ + 1) return nullptr;
    if (c.bytes > sizeof c.first_bytes) __builtin_prefetch(&c + 1);  // short letters end there
    return &c;
  }
  /// Goes on to the one after it.
  void take() { ++next_; }
  /// Hands back the slots of all that was taken.
  void release() { released().store(next_, std::memory_order_release); }

 private:
  std::uint64_t next_ = 0;
};

}  // namespace kplan::transport
