// How it works: single producer, single consumer. The sender writes the bytes and then the slot's flag with release,
// seq + 1; the receiver reads the flag with acquire and then the bytes. How many messages were released goes back by a
// counter on a line of its own, which the sender looks at only when its last look leaves it no slot.
#include "transports/node/ring.hpp"

#include <atomic>
#include <cassert>
#include <cstring>
#include <limits>
#include <new>

#include "transports/ends.hpp"

namespace kplan::transport::node_path {
namespace {

constexpr std::size_t line_bytes = 64;
using Flag = std::atomic<std::uint64_t>;
static_assert(Flag::is_always_lock_free);

std::size_t slot_bytes(std::size_t capacity_bytes) {
  return (capacity_bytes + sizeof(Flag) + line_bytes - 1) / line_bytes * line_bytes;
}

/// The memory of one ring: the counter's line, then the slots.
class Ring {
 public:
  Ring(std::shared_ptr<Segment> segment, std::size_t offset, const ChannelSpec& spec)
      : segment_(std::move(segment)),
        base_(segment_->data() + offset),
        slot_bytes_(slot_bytes(spec.capacity_bytes)),
        slots_(static_cast<std::uint64_t>(spec.slots)),
        mask_((slots_ & (slots_ - 1)) == 0 ? slots_ - 1 : 0) {}

  std::uint64_t slots() const { return slots_; }
  std::byte* slot(std::uint64_t seq) const {
    return base_ + line_bytes + (mask_ != 0 ? seq & mask_ : seq % slots_) * slot_bytes_;
  }
  // The segment's memory starts as zeros, which is what a flag of no message is.
  Flag& flag(std::byte* slot) const { return *reinterpret_cast<Flag*>(slot + slot_bytes_ - sizeof(Flag)); }
  Flag& released() const { return *reinterpret_cast<Flag*>(base_); }

 private:
  std::shared_ptr<Segment> segment_;
  std::byte* base_;
  std::size_t slot_bytes_;
  std::uint64_t slots_, mask_;
};

class Sender final : public SendingEnd {
 public:
  Sender(std::shared_ptr<Segment> segment, std::size_t offset, const ChannelSpec& spec)
      : ring_(std::move(segment), offset, spec) {}

  std::byte* send_slot(std::uint64_t seq) override {
    if (seq >= released_ + ring_.slots()) {
      released_ = ring_.released().load(std::memory_order_acquire);
      if (seq >= released_ + ring_.slots()) return nullptr;
    }
    return ring_.slot(seq);
  }

  void put(std::uint64_t seq, std::size_t) override {
    ring_.flag(ring_.slot(seq)).store(seq + 1, std::memory_order_release);
  }

  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
    std::memcpy(ring_.slot(seq), region, bytes);
    put(seq, bytes);
  }

  bool is_sent(std::uint64_t) override { return true; }

 private:
  Ring ring_;
  std::uint64_t released_ = 0;  // when last looked
};

class Receiver final : public ReceivingEnd {
 public:
  Receiver(std::shared_ptr<Segment> segment, std::size_t offset, const ChannelSpec& spec)
      : ring_(std::move(segment), offset, spec) {}

  const std::byte* arrived(std::uint64_t seq) override {
    std::byte* const slot = ring_.slot(seq);
    return ring_.flag(slot).load(std::memory_order_acquire) == seq + 1 ? slot : nullptr;
  }

  void release(std::uint64_t seq) override { ring_.released().store(seq + 1, std::memory_order_release); }

 private:
  Ring ring_;
};

}  // namespace

std::size_t ring_bytes(std::size_t capacity_bytes, int slots) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 4;
  if (capacity_bytes > most / static_cast<std::size_t>(slots) - 2 * line_bytes) throw std::bad_alloc();
  return line_bytes + slot_bytes(capacity_bytes) * static_cast<std::size_t>(slots);
}

std::unique_ptr<Channel> sending_end(std::shared_ptr<Segment> segment, std::size_t offset, const ChannelSpec& spec) {
  return std::make_unique<Sender>(std::move(segment), offset, spec);
}

std::unique_ptr<Channel> receiving_end(std::shared_ptr<Segment> segment, std::size_t offset, const ChannelSpec& spec) {
  return std::make_unique<Receiver>(std::move(segment), offset, spec);
}

}  // namespace kplan::transport::node_path
