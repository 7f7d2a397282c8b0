// How it works: a single-producer, single-consumer ring. The sender writes the bytes, then the slot's state with
// release; the receiver reads the state with acquire, then the bytes; the counter of released messages goes back the
// same way, and the sender looks at it only when its last look leaves it no slot.
//
// A lent message lies in the sender's own memory, which may go when the sender closes in the middle (an exception,
// say). So the receiver marks such a message as taken before it reads, and a closing sender revokes those not taken and
// waits for those that are.
#include "transports/local/channel.hpp"

#include <cassert>

#include "transports/pause.hpp"

namespace kplan::transport::local_backend {
namespace {

class Sender final : public SendingEnd {
 public:
  explicit Sender(std::shared_ptr<Ring> ring) : ring_(std::move(ring)) {}
  ~Sender() override;

  std::byte* send_slot(std::uint64_t seq) override {
    if (seq >= released_ + ring_->slot_count) {
      released_ = ring_->released.load(std::memory_order_acquire);
      if (seq >= released_ + ring_->slot_count) return nullptr;
    }
    return ring_->memory.slot(ring_->index(seq));
  }

  void put(std::uint64_t seq, std::size_t bytes) override {
    publish(ring_->slots[ring_->index(seq)], seq, bytes, Hold::packed);
  }

  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
    Slot& slot = ring_->slots[ring_->index(seq)];
    slot.region = region;
    publish(slot, seq, bytes, Hold::lent);
  }

  bool is_sent(std::uint64_t seq) override {
    if (seq >= released_) released_ = ring_->released.load(std::memory_order_acquire);
    return seq < released_;
  }

 private:
  void publish(Slot& slot, std::uint64_t seq, [[maybe_unused]] std::size_t bytes, Hold hold) {
    assert(bytes <= ring_->capacity_bytes && seq == put_);
    slot.state.store(slot_state(seq, hold), std::memory_order_release);
    put_ = seq + 1;
  }

  std::shared_ptr<Ring> ring_;
  std::uint64_t put_ = 0;
  std::uint64_t released_ = 0;  // when last looked
};

Sender::~Sender() {
  // A receiver that keeps a taken message this long waits for something else; it gets an error for that sooner or
  // later, and until then the sender cannot be held.
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  for (std::uint64_t seq = ring_->released.load(std::memory_order_acquire); seq < put_; ++seq) {
    std::uint64_t state = slot_state(seq, Hold::lent);
    std::atomic<std::uint64_t>& slot = ring_->slots[ring_->index(seq)].state;
    if (slot.compare_exchange_strong(state, slot_state(seq, Hold::revoked), std::memory_order_acq_rel)) continue;
    if (state != slot_state(seq, Hold::taken)) continue;
    const auto is_being_read = [&] {
      return !is_sent(seq) && !ring_->is_receiver_closed.load(std::memory_order_acquire);
    };
    for (unsigned idle = 0; is_being_read() && Clock::now() < deadline; ++idle) pause_thread(idle, true);
  }
}

class Receiver final : public ReceivingEnd {
 public:
  explicit Receiver(std::shared_ptr<Ring> ring) : ring_(std::move(ring)) {}
  ~Receiver() override { ring_->is_receiver_closed.store(true, std::memory_order_release); }

  const std::byte* arrived(std::uint64_t seq) override {
    const std::size_t index = ring_->index(seq);
    Slot& slot = ring_->slots[index];
    std::uint64_t state = slot.state.load(std::memory_order_acquire);
    if (state == slot_state(seq, Hold::packed)) return ring_->memory.slot(index);
    if (state == slot_state(seq, Hold::taken)) return slot.region;
    if (state != slot_state(seq, Hold::lent)) return nullptr;
    const bool is_ours =
        slot.state.compare_exchange_strong(state, slot_state(seq, Hold::taken), std::memory_order_acq_rel);
    return is_ours ? slot.region : nullptr;
  }

  void release(std::uint64_t seq) override {
    assert(seq == ring_->released.load(std::memory_order_relaxed));
    ring_->released.store(seq + 1, std::memory_order_release);
  }

 private:
  std::shared_ptr<Ring> ring_;
};

}  // namespace

Ring::Ring(std::size_t capacity, int count)
    : memory(capacity, count),
      slot_count(static_cast<std::uint64_t>(count)),
      mask((slot_count & (slot_count - 1)) == 0 ? slot_count - 1 : 0),
      capacity_bytes(capacity),
      slots(std::make_unique<Slot[]>(static_cast<std::size_t>(count))) {}

std::unique_ptr<Channel> sending_end(std::shared_ptr<Ring> ring) { return std::make_unique<Sender>(std::move(ring)); }

std::unique_ptr<Channel> receiving_end(std::shared_ptr<Ring> ring) {
  return std::make_unique<Receiver>(std::move(ring));
}

}  // namespace kplan::transport::local_backend
