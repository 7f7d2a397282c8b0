// How it works: a message goes from the slot, or from the caller's region, straight into the same slot of the receiver,
// by a write that tells the receiver's completion queue the number of that slot. The receiver's credits, one for each
// message that it has released, say which slots are free; nothing else would stop a writer. Messages of more than one
// operation can carry go in so many writes as the capacity takes, some of them empty: the receiver counts them,
// whatever their order. Where the provider cannot do this, the message goes by post.
#include <cassert>
#include <utility>

#include "transports/ends.hpp"
#include "transports/ofi/channel.hpp"
#include "transports/slot_memory.hpp"

namespace kplan::transport::ofi_backend {
namespace {

class Sender;

/// One write of a message.
class Write final : public Operation {
 public:
  Write() : Operation(anybody) {}
  void belong_to(Sender& sender, std::uint32_t slot, std::size_t offset);
  void go(const std::byte* from, std::size_t bytes, void* descriptor);

 private:
  ssize_t post() override;
  void ended() override;

  Sender* sender_ = nullptr;
  std::uint32_t slot_ = 0;
  std::size_t offset_ = 0;  // from the front of the slot
  const std::byte* from_ = nullptr;
  std::size_t bytes_ = 0;
  void* descriptor_ = nullptr;
};

class Sender final : public Link {
 public:
  Sender(World& world, const ChannelSpec& spec, int lane);

  void set_number(std::uint32_t number) { number_ = number; }
  Introduction introduction() const override { return {lane_, Direction::send, number_, 0, 0, 0}; }
  void meet(const Introduction& peer) override { peer_ = peer; }
  void heard(const Note& note) override;
  bool is_over() const override;
  int unsettled_with() const override { return is_closed_ && !is_settled_ ? spec_.peer : anybody; }

  std::byte* send_slot(std::uint64_t seq) {
    const bool is_free = seq < released_ + count() && is_idle(slot(seq));
    return is_free ? memory_.slot(seq % count()) : nullptr;
  }
  void put(std::uint64_t seq, std::size_t bytes);
  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes);
  bool is_sent(std::uint64_t seq) {
    while (sent_ < put_ && is_idle(slot(sent_))) ++sent_;
    return seq < sent_;
  }
  void close();

 private:
  friend Write;
  struct Slot {
    std::unique_ptr<Write[]> writes;
    std::size_t under_way = 0;       // of them
    std::unique_ptr<Parcel> parcel;  // by post
    const std::byte* region = nullptr;
    std::size_t region_bytes = 0;
    Registration registration;  // of the region
  };

  std::uint64_t count() const { return static_cast<std::uint64_t>(spec_.slots); }
  Slot& slot(std::uint64_t seq) { return slots_[seq % count()]; }
  static bool is_idle(const Slot& slot) { return slot.parcel ? slot.parcel->is_sent() : slot.under_way == 0; }
  void go(std::uint64_t seq, const std::byte* from, std::size_t bytes, void* descriptor);

  World& world_;
  ChannelSpec spec_;
  int lane_;
  std::uint32_t number_ = 0;
  std::size_t pieces_;
  std::size_t stride_;  // of the receiver's slots
  SlotMemory memory_;
  Registration registration_;  // of memory_, when it is first sent from
  std::unique_ptr<Slot[]> slots_;
  std::optional<Introduction> peer_;
  std::uint64_t put_ = 0;
  std::uint64_t sent_ = 0;      // without a gap
  std::uint64_t released_ = 0;  // by the receiver
  bool is_closed_ = false, is_peer_closed_ = false, is_settled_ = false;
};

void Write::belong_to(Sender& sender, std::uint32_t slot, std::size_t offset) {
  sender_ = &sender;
  slot_ = slot;
  offset_ = offset;
  set_peer(sender.spec_.peer);
}

void Write::go(const std::byte* from, std::size_t bytes, void* descriptor) {
  from_ = from;
  bytes_ = bytes;
  descriptor_ = descriptor;
  sender_->world_.endpoint().start(*this);
}

ssize_t Write::post() {
  const Endpoint& endpoint = sender_->world_.endpoint();
  const Introduction& there = *sender_->peer_;
  const std::uint64_t to = there.address + slot_ * sender_->stride_ + offset_;
  const std::uint64_t notice = there.first_slot + slot_;
  if (bytes_ > sender_->world_.most_injected())
    return fi_writedata(endpoint.ep(), from_, bytes_, descriptor_, notice, endpoint.address(peer()), to, there.key,
                        context());
  const ssize_t status =
      fi_inject_writedata(endpoint.ep(), from_, bytes_, notice, endpoint.address(peer()), to, there.key);
  return status == 0 ? 1 : status;
}

void Write::ended() {
  --sender_->slot(slot_).under_way;
  if (sender_->is_closed_) sender_->world_.links().review(sender_->number_);  // the last thing that this object does
}

Sender::Sender(World& world, const ChannelSpec& spec, int lane)
    : world_(world),
      spec_(spec),
      lane_(lane),
      pieces_((spec.capacity_bytes + world.limits().piece_bytes - 1) / world.limits().piece_bytes),
      stride_(arena_bytes(spec) / static_cast<std::size_t>(spec.slots)),
      memory_(spec.capacity_bytes, spec.slots),
      slots_(std::make_unique<Slot[]>(static_cast<std::size_t>(spec.slots))) {
  for (std::uint32_t i = 0; i < count(); ++i) {
    if (!world_.is_one_sided()) {
      slots_[i].parcel = std::make_unique<Parcel>(world_.post(), spec.peer);
      continue;
    }
    slots_[i].writes = std::make_unique<Write[]>(pieces_);
    for (std::size_t k = 0; k < pieces_; ++k) slots_[i].writes[k].belong_to(*this, i, k * world_.limits().piece_bytes);
  }
}

void Sender::put(std::uint64_t seq, std::size_t bytes) {
  if (world_.endpoint().provider().wants(FI_MR_LOCAL) && registration_.descriptor() == nullptr)
    registration_ = Registration::local(world_.endpoint(), memory_.slot(0), arena_bytes(spec_));
  go(seq, memory_.slot(seq % count()), bytes, registration_.descriptor());
}

void Sender::put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) {
  Slot& own = slot(seq);
  if (world_.endpoint().provider().wants(FI_MR_LOCAL) && (own.region != region || own.region_bytes < bytes)) {
    own.region = nullptr;
    own.registration = Registration::local(world_.endpoint(), region, bytes);
    own.region = region;
    own.region_bytes = bytes;
  }
  go(seq, region, bytes, own.registration.descriptor());
}

void Sender::go(std::uint64_t seq, const std::byte* from, std::size_t bytes, void* descriptor) {
  assert(seq == put_ && seq < released_ + count() && bytes <= spec_.capacity_bytes);
  ++put_;
  Slot& own = slot(seq);
  if (own.parcel) {
    const auto there = static_cast<std::uint32_t>(peer_->first_slot + seq % count());
    return world_.post().send(spec_.peer, Word::put, there, 0, {from, bytes}, *own.parcel);
  }
  own.under_way = pieces_;
  const std::size_t most = world_.limits().piece_bytes;
  for (std::size_t k = 0; k < pieces_; ++k) {
    const std::size_t begin = std::min(bytes, k * most);
    own.writes[k].go(from + begin, std::min(bytes - begin, most), descriptor);
  }
}

void Sender::heard(const Note& note) {
  if (note.word == Word::credit) ++released_;
  if (note.word == Word::closed) is_peer_closed_ = true;
  if (note.word == Word::settled) is_settled_ = true;
}

bool Sender::is_over() const {
  if (!is_closed_ || !is_peer_closed_ || !is_settled_) return !peer_ && is_closed_;
  for (std::uint64_t i = 0; i < count(); ++i) {
    if (!is_idle(slots_[i])) return false;
  }
  return true;
}

void Sender::close() {
  is_closed_ = true;
  if (peer_) world_.post().send(spec_.peer, Word::closed, peer_->number, put_);
  world_.links().review(number_);  // the last thing that this object does
}

/// The program's handle.
class SenderHandle final : public SendingEnd {
 public:
  SenderHandle(std::shared_ptr<World> world, Sender& link) : world_(std::move(world)), link_(link) {}
  ~SenderHandle() override { link_.close(); }

  std::byte* send_slot(std::uint64_t seq) override { return link_.send_slot(seq); }
  void put(std::uint64_t seq, std::size_t bytes) override { link_.put(seq, bytes); }
  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
    link_.put_in_place(seq, region, bytes);
  }
  bool is_sent(std::uint64_t seq) override { return link_.is_sent(seq); }

 private:
  std::shared_ptr<World> world_;
  Sender& link_;
};

}  // namespace

NewEnd sending_end(const std::shared_ptr<World>& world, const ChannelSpec& spec, int lane) {
  auto link = std::make_unique<Sender>(*world, spec, lane);
  Sender& sender = *link;
  const std::uint32_t number = world->links().add(std::move(link));
  sender.set_number(number);
  return {std::make_unique<SenderHandle>(world, sender), number};
}

}  // namespace kplan::transport::ofi_backend
