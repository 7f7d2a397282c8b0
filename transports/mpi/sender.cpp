// How it works: message seq goes from slot seq % slots by a persistent send. A few persistent receives, into as many
// slots, are started in turn when the channel opens and again at each release; what comes when none is under way MPI
// keeps. It keeps messages of one tag in order, so message and receive number the same. A message shorter than the slot
// is an ordinary send; a region sent in place has a persistent send of its own, which is made anew only when the region
// changes. A message may be several parts, each of them a message to MPI, and everything is counted in parts: short
// ones, which MPI buffers, and those of which the first bytes go ahead of the rest. A short one goes from slot 0
// whenever those before are sent, which are the lines that are in the caches.
//
// MPI sends small messages before they are received, so completed sends alone would let a sender run ahead without
// bound. The last slot's sends are therefore synchronous: they complete when their receive is matched, and hold the
// sender to less than three rounds of slots ahead of the receiver.
#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/ends.hpp"
#include "transports/mpi/channel.hpp"
#include "transports/mpi/message_parts.hpp"
#include "transports/mpi/message_type.hpp"

namespace kplan::transport::mpi_backend {
namespace {

/// Where the other end may leave messages, an empty one says that no more follow.
void say_end(const World& world, const ChannelSpec& spec, int tag, std::vector<MPI_Request>* requests) {
  if (!spec.may_leave_messages) return;
  requests->push_back(MPI_REQUEST_NULL);
  check(MPI_Isend(nullptr, 0, MPI_BYTE, spec.peer, tag, world.comm(), &requests->back()), "MPI_Isend");
}

/// Messages that MPI buffers. Isend is done with the smallest at once, where a persistent request costs as much as a
/// long message does; of longer ones that is faster, so one is made for those that lie where the last one lay.
class ShortSender final : public SendingEnd, private RequestHolder {
 public:
  ShortSender(std::shared_ptr<World> world, const ChannelSpec& spec, int tag, std::size_t part_bytes)
      : world_(std::move(world)),
        spec_(spec),
        tag_(tag),
        parts_(spec.capacity_bytes, part_bytes),
        memory_(spec.capacity_bytes, spec.slots),
        requests_(static_cast<std::size_t>(spec.slots) * parts_.count, MPI_REQUEST_NULL),
        active_(requests_.size()),
        prepared_(parts_.count, MPI_REQUEST_NULL) {
    world_->enter(this);
  }
  ~ShortSender() override { world_->end(this); }

  [[gnu::hot]] std::byte* send_slot(std::uint64_t seq) override {
    while ((seq + 1) * parts_.count > sent_ + requests_.size()) {
      if (!advance()) return nullptr;
    }
    if (std::exchange(is_offered_, true)) return memory_.slot(slot_);
    // Memory that was written last is in the caches, and free again as soon as everything is sent.
    slot_ = sent_ == put_ ? 0 : (slot_ + 1) % static_cast<std::size_t>(spec_.slots);
    return memory_.slot(slot_);
  }
  [[gnu::hot]] void put(std::uint64_t seq, std::size_t bytes) override {
    put_in_place(seq, memory_.slot(slot_), bytes);
  }
  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override;
  [[gnu::hot]] bool is_sent(std::uint64_t seq) override {
    while ((seq + 1) * parts_.count > sent_) {
      if (!advance()) return false;
    }
    return true;
  }

 private:
  void prepare(const std::byte* region, std::size_t bytes);
  bool advance();
  void close() override;
  void leak() override { memory_.leak(); }

  std::shared_ptr<World> world_;
  ChannelSpec spec_;
  int tag_;
  MessageParts parts_;
  SlotMemory memory_;
  std::vector<MPI_Request> requests_;  // by slot and part
  std::vector<MPI_Request*> active_;   // the ones that parts went by, in the same places
  std::vector<MPI_Request> prepared_;  // persistent, by part; none of the smallest
  const std::byte* region_ = nullptr;  // the message that they are for, or would be
  std::size_t region_bytes_ = 0;
  bool is_prepared_ = false;  // the message that is put is the same
  std::uint64_t put_ = 0;     // parts
  std::uint64_t sent_ = 0;    // parts known to be sent, without a gap
  std::size_t slot_ = 0;      // of the next message if it is offered, else of the last
  bool is_offered_ = false;
};

[[gnu::hot]] void ShortSender::put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) {
  assert(seq * parts_.count == put_ && put_ < sent_ + requests_.size() && bytes <= spec_.capacity_bytes);
  (void)seq;
  world_->require_open();
  is_offered_ = false;
  prepare(region, bytes);
  for (std::size_t part = 0; part < parts_.count; ++part, ++put_) {
    const std::size_t index = put_ % requests_.size();
    const bool is_synchronous = index + 1 == requests_.size();
    if (is_prepared_ && !is_synchronous && prepared_[part] != MPI_REQUEST_NULL) {
      active_[index] = &prepared_[part];
      mpi_backend::start(*world_, active_[index]);
      continue;
    }
    active_[index] = &requests_[index];
    const auto send = is_synchronous ? MPI_Issend : MPI_Isend;
    check(send(region + parts_.begin(part, bytes), static_cast<int>(parts_.length(part, bytes)), MPI_BYTE, spec_.peer,
               tag_, world_->comm(), active_[index]),
          "MPI_Isend");
  }
}

/// Notes whether the message can go by the persistent requests: nothing does now, and the last one lay there, too. A
/// program that swaps two arrays would have them made anew each time.
[[gnu::hot]] void ShortSender::prepare(const std::byte* region, std::size_t bytes) {
  is_prepared_ = false;
  if (parts_.part_bytes <= longest_inlined || sent_ != put_) return;
  if (region != region_ || bytes != region_bytes_) {
    for (MPI_Request& request : prepared_) free_request(&request);
    region_ = region;
    region_bytes_ = bytes;
    return;
  }
  is_prepared_ = true;
  if (prepared_[0] != MPI_REQUEST_NULL) return;
  for (std::size_t part = 0; part < parts_.count && parts_.length(part, bytes) > longest_inlined; ++part)
    check(MPI_Send_init(region + parts_.begin(part, bytes), static_cast<int>(parts_.length(part, bytes)), MPI_BYTE,
                        spec_.peer, tag_, world_->comm(), &prepared_[part]),
          "MPI_Send_init");
}

/// Counts the oldest part under way as sent if it is.
[[gnu::hot]] bool ShortSender::advance() {
  if (sent_ == put_ || !is_complete(*world_, active_[sent_ % active_.size()])) return false;
  ++sent_;
  return true;
}

void ShortSender::close() {
  while (advance()) {
  }
  std::vector<MPI_Request> unfinished;
  for (; sent_ < put_; ++sent_) unfinished.push_back(std::exchange(*active_[sent_ % active_.size()], MPI_REQUEST_NULL));
  for (MPI_Request& request : prepared_) free_request(&request);
  say_end(*world_, spec_, tag_, &unfinished);
  if (!unfinished.empty()) world_->adopt(std::move(unfinished), std::move(memory_));
}

/// Longer messages. A message that goes as a whole is of one part.
class Sender final : public SendingEnd, private RequestHolder {
 public:
  Sender(std::shared_ptr<World> world, const ChannelSpec& spec, int tag, std::size_t part_bytes);
  ~Sender() override { world_->end(this); }

  [[gnu::hot]] std::byte* send_slot(std::uint64_t seq) override {
    while ((seq + 1) * parts_.count > sent_ + requests_.size()) {
      if (!advance()) return nullptr;
    }
    return memory_.slot(seq % slots_);
  }
  void put_first(std::uint64_t seq, std::size_t bytes) override;
  void put(std::uint64_t seq, std::size_t bytes) override;
  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override;
  [[gnu::hot]] bool is_sent(std::uint64_t seq) override {
    while ((seq + 1) * parts_.count > sent_) {
      if (!advance()) return false;
    }
    return true;
  }

 private:
  struct Requests {
    MPI_Request full = MPI_REQUEST_NULL;      // persistent, in the slot
    MPI_Request in_place = MPI_REQUEST_NULL;  // persistent, in the slot's region
    MPI_Request once = MPI_REQUEST_NULL;      // of a shorter message
    MPI_Request* active = nullptr;            // the one that is under way, if one is
  };
  struct Region {
    const std::byte* bytes = nullptr;
    std::size_t size = 0;
    bool operator==(const Region&) const = default;
  };

  Requests& next() { return requests_[put_ % requests_.size()]; }
  bool is_synchronous(const Requests& part) const { return &part == &requests_.back(); }
  void init(const Requests& part, const std::byte* from, std::size_t bytes, MPI_Request* request);
  void start(MPI_Request* request);
  bool advance();
  void close() override;
  void leak() override { memory_.leak(); }

  std::shared_ptr<World> world_;
  ChannelSpec spec_;
  int tag_;
  std::size_t slots_;
  MessageParts parts_;
  SlotMemory memory_;
  std::vector<Requests> requests_;  // by slot and part
  std::vector<Region> regions_;     // by slot: the one of its requests in_place
  std::uint64_t put_ = 0;           // parts
  std::uint64_t sent_ = 0;          // parts known to be sent, without a gap
};

Sender::Sender(std::shared_ptr<World> world, const ChannelSpec& spec, int tag, std::size_t part_bytes)
    : world_(std::move(world)),
      spec_(spec),
      tag_(tag),
      slots_(static_cast<std::size_t>(spec.slots)),
      parts_(spec.capacity_bytes, part_bytes),
      memory_(spec.capacity_bytes, spec.slots),
      requests_(slots_ * parts_.count),
      regions_(slots_) {
  world_->enter(this);
  try {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const std::size_t part = i % parts_.count;
      init(requests_[i], memory_.slot(i / parts_.count) + parts_.begin(part, spec.capacity_bytes),
           parts_.length(part, spec.capacity_bytes), &requests_[i].full);
    }
  } catch (...) {
    world_->leave(this);  // requests that were never started hold on to nothing
    throw;
  }
}

void Sender::init(const Requests& part, const std::byte* from, std::size_t bytes, MPI_Request* request) {
  const MessageType message(bytes, world_->limits().max_count);
  if (is_synchronous(part)) {
    check(MPI_Ssend_init(from, message.count(), message.type(), spec_.peer, tag_, world_->comm(), request),
          "MPI_Ssend_init");
  } else {
    check(MPI_Send_init(from, message.count(), message.type(), spec_.peer, tag_, world_->comm(), request),
          "MPI_Send_init");
  }
}

/// Of the next part.
[[gnu::hot]] void Sender::start(MPI_Request* request) {
  mpi_backend::start(*world_, request);
  next().active = request;
  ++put_;
}

[[gnu::hot]] void Sender::put_first(std::uint64_t seq, std::size_t bytes) {
  assert(seq * parts_.count <= put_ && put_ <= (seq + 1) * parts_.count &&
         (seq + 1) * parts_.count <= sent_ + requests_.size());
  for (std::size_t part = put_ - seq * parts_.count; part < parts_.count; ++part) {
    if (parts_.end(part, spec_.capacity_bytes) > bytes) return;
    start(&next().full);
  }
}

[[gnu::hot]] void Sender::put(std::uint64_t seq, std::size_t bytes) {
  assert((seq + 1) * parts_.count <= sent_ + requests_.size() && bytes <= spec_.capacity_bytes);
  if (bytes == spec_.capacity_bytes) return put_first(seq, bytes);
  assert(put_ == seq * parts_.count);
  world_->require_open();
  for (std::size_t part = 0; part < parts_.count; ++part) {
    Requests& r = next();
    const std::byte* const from = memory_.slot(seq % slots_) + parts_.begin(part, bytes);
    const MessageType message(parts_.length(part, bytes), world_->limits().max_count);
    const auto send = is_synchronous(r) ? MPI_Issend : MPI_Isend;
    check(send(from, message.count(), message.type(), spec_.peer, tag_, world_->comm(), &r.once), "MPI_Isend");
    r.active = &r.once;
    ++put_;
  }
}

void Sender::put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) {
  assert(put_ == seq * parts_.count && put_ + parts_.count <= sent_ + requests_.size() &&
         bytes <= spec_.capacity_bytes);
  world_->require_open();
  const std::size_t slot = seq % slots_;
  const std::span<Requests> requests(&requests_[slot * parts_.count], parts_.count);
  if (regions_[slot] != Region{region, bytes}) {
    regions_[slot] = {};
    for (Requests& r : requests) free_request(&r.in_place);
    for (std::size_t part = 0; part < parts_.count; ++part)
      init(requests[part], region + parts_.begin(part, bytes), parts_.length(part, bytes), &requests[part].in_place);
    regions_[slot] = {region, bytes};
  }
  for (Requests& r : requests) start(&r.in_place);
}

/// Counts the oldest part under way as sent if it is.
[[gnu::hot]] bool Sender::advance() {
  if (sent_ == put_) return false;
  Requests& oldest = requests_[sent_ % requests_.size()];
  if (!is_complete(*world_, oldest.active)) return false;
  oldest.active = nullptr;
  ++sent_;
  return true;
}

void Sender::close() {
  while (advance()) {
  }
  std::vector<MPI_Request> unfinished;
  for (Requests& r : requests_) {
    for (MPI_Request* request : {&r.full, &r.in_place, &r.once}) {
      if (request == r.active) {
        unfinished.push_back(*request);
      } else {
        free_request(request);
      }
    }
  }
  say_end(*world_, spec_, tag_, &unfinished);
  if (!unfinished.empty()) world_->adopt(std::move(unfinished), std::move(memory_));
}

}  // namespace

std::unique_ptr<Channel> sending_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag,
                                     std::size_t part_bytes) {
  constexpr std::size_t longest_short = 8192;
  if (spec.capacity_bytes <= longest_short && spec.ahead_bytes == 0)
    return std::make_unique<ShortSender>(std::move(world), spec, tag, part_bytes);
  return std::make_unique<Sender>(std::move(world), spec, tag, part_bytes);
}

}  // namespace kplan::transport::mpi_backend
