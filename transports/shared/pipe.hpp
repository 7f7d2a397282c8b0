#pragma once
// A pipe from one rank to another with which it shares memory: letters, in chunks, one after the other. Two slots: the
// receiver may keep one chunk where it lies while the next comes. A chunk begins on the line that says it is there;
// long ones that do not fill their slots lie behind those before them, on lines that have left the caches of both
// cores, as in rings (best_ring_slots). Single producer, single consumer, as ring.hpp.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace kplan::transport {

/// What stands before the bytes of a chunk.
struct alignas(32) Chunk {
  std::atomic<std::uint64_t> word;  ///< one more than the number of the chunk that lies here
  std::uint64_t letter_bytes;       ///< of the whole letter
  std::uint32_t bytes;              ///< of it in this chunk
  std::uint32_t offset_bytes;       ///< where they begin
  std::uint32_t has_letter;         ///< 0: there is none, this only ends the exchange
  std::uint32_t is_last;            ///< in its exchange from this sender

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1) + offset_bytes; }
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
  PipeSender(PipeMemory memory, std::size_t chunk_bytes)
      : PipeEnd(std::move(memory), chunk_bytes), chunk_bytes_(chunk_bytes) {}
  /// Where to put the next chunk, of so many bytes; null while both slots are in use.
  Chunk* free(std::size_t bytes) {
    if (next_ >= released_ + slots) released_ = released().load(std::memory_order_acquire);
    if (next_ >= released_ + slots) return nullptr;
    Chunk& c = chunk(next_);
    const bool fits = turn_bytes_ + bytes <= chunk_bytes_;
    c.offset_bytes = static_cast<std::uint32_t>(bytes >= fewest_to_turn && fits ? turn_bytes_ : 0);
    return &c;
  }
  /// Whether the receiver has read the lines of free(bytes) before.
  bool is_worn(const Chunk& c) const { return next_ >= slots && (c.offset_bytes == 0 || has_turned_); }
  /// Chunks put so far.
  std::uint64_t put_count() const { return next_; }
  /// The receiver is known to have handed back that many: spares a look at its counter, a line that it writes.
  void note_released(std::uint64_t count) { released_ = std::max(released_, count); }
  /// Sends what lies in free(bytes).
  void put() {
    Chunk& c = chunk(next_);
    if (c.bytes >= fewest_to_turn) {
      has_turned_ = has_turned_ || c.offset_bytes < turn_bytes_;
      turn_bytes_ = (c.offset_bytes + c.bytes + line_bytes - 1) / line_bytes * line_bytes;
    }
    c.word.store(++next_, std::memory_order_release);
  }

 private:
  static constexpr std::size_t fewest_to_turn = 8192;
  std::size_t chunk_bytes_;
  std::size_t turn_bytes_ = 0;  ///< where the next long chunk begins in its slot
  bool has_turned_ = false;     ///< some have begun there before
  std::uint64_t next_ = 0, released_ = 0;
};

class PipeReceiver : PipeEnd {
 public:
  PipeReceiver(PipeMemory memory, std::size_t chunk_bytes) : PipeEnd(std::move(memory), chunk_bytes) {}
  /// The next chunk, if it has come.
  Chunk* arrived() {
    Chunk& c = chunk(next_);
    if (c.word.load(std::memory_order_acquire) != next_ + 1) return nullptr;
    __builtin_prefetch(reinterpret_cast<const std::byte*>(&c) + line_bytes);  // short letters end there
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
