// How it works: a slot counts the writes that have come for it; when it has all of one message, the message has
// arrived. Which message that is follows from the slot, since the sender uses it again only after a credit. An end that
// the program has closed goes on counting until all that the sender has put is here, and then tells it so.
#include <cassert>
#include <utility>

#include "transports/ends.hpp"
#include "transports/ofi/channel.hpp"
#include "transports/slot_memory.hpp"

namespace kplan::transport::ofi_backend {
namespace {

class Receiver final : public Link, private SlotOwner {
 public:
  Receiver(World& world, const ChannelSpec& spec, int lane, std::shared_ptr<Arena> arena, std::size_t offset_bytes);
  ~Receiver() override { world_.links().remove_slots(first_slot_, static_cast<std::uint32_t>(count())); }

  void set_number(std::uint32_t number) { number_ = number; }
  Introduction introduction() const override;
  void meet(const Introduction& peer) override {
    peer_ = peer;
    settle();  // a peer that met this end first may have closed its own already
  }
  void heard(const Note& note) override;
  bool is_over() const override { return is_closed_ && (has_settled_ || !peer_); }

  const std::byte* arrived(std::uint64_t seq) const {
    if (seq >= released_ + count() || came_[seq % count()] < pieces_) return nullptr;
    return memory_ + (seq % count()) * stride_;
  }
  void release(std::uint64_t seq) {
    assert(arrived(seq) != nullptr && seq == released_);
    came_[seq % count()] = 0;
    ++released_;
    world_.post().send(spec_.peer, Word::credit, peer_->number);
  }
  void close();

 private:
  std::uint64_t count() const { return came_.size(); }
  std::byte* slot_memory(std::uint32_t slot) override { return memory_ + slot * stride_; }
  void written(std::uint32_t slot) override;
  void filled(std::uint32_t slot) override;
  void settle();

  World& world_;
  ChannelSpec spec_;
  int lane_;
  std::uint32_t number_ = 0;
  std::size_t pieces_;
  std::size_t stride_;
  std::shared_ptr<Arena> arena_;
  std::byte* memory_;
  std::vector<std::size_t> came_;  // writes, by slot
  std::uint32_t first_slot_;
  std::optional<Introduction> peer_;
  std::uint64_t released_ = 0;
  std::uint64_t whole_ = 0;           // messages that have come
  std::optional<std::uint64_t> put_;  // by a sender that has closed
  bool is_closed_ = false, has_settled_ = false;
};

Receiver::Receiver(World& world, const ChannelSpec& spec, int lane, std::shared_ptr<Arena> arena,
                   std::size_t offset_bytes)
    : world_(world),
      spec_(spec),
      lane_(lane),
      pieces_((spec.capacity_bytes + world.limits().piece_bytes - 1) / world.limits().piece_bytes),
      stride_(arena_bytes(spec) / static_cast<std::size_t>(spec.slots)),
      arena_(std::move(arena)),
      memory_(arena_->pages.data() + offset_bytes),
      came_(static_cast<std::size_t>(spec.slots)),
      first_slot_(world.links().add_slots(*this, static_cast<std::uint32_t>(spec.slots))) {}

Introduction Receiver::introduction() const {
  Introduction out{lane_, Direction::receive, number_, first_slot_, 0, 0};
  if (world_.endpoint().provider().is_one_sided) {
    out.address = arena_->registration.remote_address(memory_);
    out.key = arena_->registration.key();
  }
  return out;
}

void Receiver::heard(const Note& note) {
  if (note.word == Word::closed) put_ = note.value;
  settle();
}

void Receiver::written(std::uint32_t slot) {
  if (++came_[slot] == pieces_) filled(slot);
}

void Receiver::filled(std::uint32_t slot) {
  came_[slot] = pieces_;
  ++whole_;
  if (!put_) return;
  settle();
  world_.links().review(number_);  // the last thing that this object does
}

void Receiver::settle() {
  if (has_settled_ || !peer_ || !put_ || whole_ < *put_) return;
  has_settled_ = true;
  world_.post().send(spec_.peer, Word::settled, peer_->number);
}

void Receiver::close() {
  is_closed_ = true;
  if (peer_) world_.post().send(spec_.peer, Word::closed, peer_->number);
  world_.links().review(number_);  // the last thing that this object does
}

/// The program's handle.
class ReceiverHandle final : public ReceivingEnd {
 public:
  ReceiverHandle(std::shared_ptr<World> world, Receiver& link) : world_(std::move(world)), link_(link) {}
  ~ReceiverHandle() override { link_.close(); }

  const std::byte* arrived(std::uint64_t seq) override { return link_.arrived(seq); }
  void release(std::uint64_t seq) override { link_.release(seq); }

 private:
  std::shared_ptr<World> world_;
  Receiver& link_;
};

}  // namespace

Arena::Arena(Endpoint& endpoint, std::size_t bytes) : pages(bytes) {
  if (bytes > 0 && endpoint.provider().is_one_sided) registration = Registration::remote(endpoint, pages.data(), bytes);
}

std::size_t arena_bytes(const ChannelSpec& spec) {
  constexpr std::size_t most = std::size_t{1} << 62;
  if (spec.capacity_bytes > most / static_cast<std::size_t>(spec.slots)) throw std::bad_alloc();
  const std::size_t stride = (spec.capacity_bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
  return stride * static_cast<std::size_t>(spec.slots);
}

NewEnd receiving_end(const std::shared_ptr<World>& world, const ChannelSpec& spec, int lane,
                     std::shared_ptr<Arena> arena, std::size_t offset_bytes) {
  auto link = std::make_unique<Receiver>(*world, spec, lane, std::move(arena), offset_bytes);
  Receiver& receiver = *link;
  const std::uint32_t number = world->links().add(std::move(link));
  receiver.set_number(number);
  return {std::make_unique<ReceiverHandle>(world, receiver), number};
}

}  // namespace kplan::transport::ofi_backend
