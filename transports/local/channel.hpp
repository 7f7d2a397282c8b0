#pragma once
// A channel between two threads: a ring of slots that both ends own together. Each slot has a flag on a cache line of
// its own that says which message lies in it and where; one counter, on another line, says how many were released.

#include <atomic>
#include <memory>

#include "transports/ends.hpp"
#include "transports/slot_memory.hpp"

namespace kplan::transport::local_backend {

inline constexpr std::size_t cache_line = 64;

/// How a message lies in its slot; the low two bits of a slot's state.
enum class Hold : std::uint64_t {
  packed = 0,   ///< in the slot's own memory
  lent = 1,     ///< in the sender's memory, nobody reads it yet
  taken = 2,    ///< in the sender's memory, the receiver may be reading it
  revoked = 3,  ///< the sender closed before the receiver took it
};

struct alignas(cache_line) Slot {
  std::atomic<std::uint64_t> state{0};  ///< 4 * (seq + 1) + hold; 0 before the first message
  const std::byte* region = nullptr;    ///< of a lent message; published by state
};

inline std::uint64_t slot_state(std::uint64_t seq, Hold hold) {
  return 4 * (seq + 1) + static_cast<std::uint64_t>(hold);
}

/// What the two ends share.
struct Ring {
  Ring(std::size_t capacity_bytes, int slot_count);

  std::size_t index(std::uint64_t seq) const { return mask != 0 ? seq & mask : seq % slot_count; }

  SlotMemory memory;
  std::uint64_t slot_count;
  std::uint64_t mask;  ///< slot_count - 1 if that spares a division, else 0
  std::size_t capacity_bytes;
  std::unique_ptr<Slot[]> slots;
  alignas(cache_line) std::atomic<std::uint64_t> released{0};  ///< messages handed back by the receiver
  alignas(cache_line) std::atomic<bool> is_receiver_closed{false};
};

std::unique_ptr<Channel> sending_end(std::shared_ptr<Ring> ring);
std::unique_ptr<Channel> receiving_end(std::shared_ptr<Ring> ring);

}  // namespace kplan::transport::local_backend
