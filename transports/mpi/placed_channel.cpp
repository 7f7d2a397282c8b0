// How it works: persistent requests for each of the last few places where messages lay, and for the slot, one for each
// part; one message is under way at a time. What travels is the same bytes wherever they lie at either end. A receive
// is started when the message is expected, not before, since it may go to the program's memory. The last part's send is
// synchronous, so that none runs ahead.
#include "transports/mpi/placed_channel.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/ends.hpp"
#include "transports/mpi/cut_blocks.hpp"
#include "transports/mpi/memory_type.hpp"
#include "transports/mpi/message_parts.hpp"
#include "transports/mpi/message_type.hpp"

namespace kplan::transport::mpi_backend {
namespace {

/// Persistent requests on memory that its owner describes, and on a slot.
class PlacedRequests final : private RequestHolder {
 public:
  PlacedRequests(std::shared_ptr<World> world, const ChannelSpec& spec, int tag, std::size_t part_bytes)
      : world_(std::move(world)),
        spec_(spec),
        tag_(tag),
        parts_(spec.capacity_bytes, part_bytes),
        memory_(spec.capacity_bytes, 1),
        slot_requests_(parts_.count, MPI_REQUEST_NULL) {
    for (std::size_t part = 0; part < parts_.count; ++part) {
      const MessageType message(parts_.length(part, spec.capacity_bytes), world_->limits().max_count);
      init(slot() + first_of(part), message.count(), message.type(), part, &slot_requests_[part]);
    }
    world_->enter(this);
  }
  ~PlacedRequests() { world_->end(this); }
  PlacedRequests(const PlacedRequests&) = delete;
  PlacedRequests& operator=(const PlacedRequests&) = delete;

  void place(std::span<const Blocks> blocks);
  std::byte* slot() const { return memory_.slot(0); }
  /// The parts of message `seq` that end within its first `bytes`, those that were started before left out.
  void start_first(std::uint64_t seq, Lies lies, std::size_t bytes);
  void start(std::uint64_t seq, Lies lies) { start_first(seq, lies, spec_.capacity_bytes); }
  /// Whether nothing is under way.
  bool is_complete();
  /// Of the message in the slot that is under way, or was last.
  std::span<const std::byte> first_bytes() {
    if (is_complete() || lies_ == Lies::in_place) return {};
    return {slot(), done_ * parts_.part_bytes};
  }
  /// Whether nothing is under way any more.
  bool cancel();
  /// Whether nothing is under way any more to the program's memory.
  bool give_up() { return !world_->is_open() || cancel() || lies_ == Lies::in_slot; }

 private:
  /// Where messages lie, or lay lately: programs that swap two arrays come back to them.
  struct Place {
    std::vector<Blocks> blocks;
    std::vector<MPI_Request> requests;  ///< by part
  };
  static constexpr std::size_t most_places = 4;

  std::size_t first_of(std::size_t part) const { return parts_.begin(part, spec_.capacity_bytes); }
  std::size_t end_of(std::size_t part) const { return parts_.end(part, spec_.capacity_bytes); }
  void init(void* memory, int count, MPI_Datatype type, std::size_t part, MPI_Request* request) const;
  void close() override;
  void leak() override { memory_.leak(); }

  std::shared_ptr<World> world_;
  ChannelSpec spec_;
  int tag_;
  MessageParts parts_;
  SlotMemory memory_;
  std::vector<MPI_Request> slot_requests_;  ///< by part
  std::vector<Place> places_;               ///< the one in use first
  MPI_Request* active_ = nullptr;           ///< those of the message that is under way, if one is
  Lies lies_ = Lies::in_slot;               ///< it
  std::uint64_t begun_ = 0;                 ///< messages
  std::size_t started_ = 0, done_ = 0;      ///< parts of the last of them
  bool is_cancelled_ = false;
};

void PlacedRequests::init(void* memory, int count, MPI_Datatype type, std::size_t part, MPI_Request* request) const {
  MPI_Comm const comm = world_->comm();
  if (spec_.direction == Direction::receive)
    check(MPI_Recv_init(memory, count, type, spec_.peer, tag_, comm, request), "MPI_Recv_init");
  else if (part + 1 == parts_.count)
    check(MPI_Ssend_init(memory, count, type, spec_.peer, tag_, comm, request), "MPI_Ssend_init");
  else check(MPI_Send_init(memory, count, type, spec_.peer, tag_, comm, request), "MPI_Send_init");
}

void PlacedRequests::place(std::span<const Blocks> blocks) {
  assert(!active_);
  world_->require_open();
  const auto known =
      std::ranges::find_if(places_, [&](const Place& p) { return std::ranges::equal(p.blocks, blocks); });
  if (known != places_.end()) {
    std::rotate(places_.begin(), known, known + 1);
    return;
  }
  std::vector<MemoryType> types;
  for (std::size_t part = 0; part < parts_.count; ++part)
    types.push_back(memory_type(cut(blocks, first_of(part), end_of(part))));
  if (places_.size() == most_places) {
    for (MPI_Request& request : places_.back().requests) free_request(&request);
    places_.pop_back();
  }
  Place place{{blocks.begin(), blocks.end()}, std::vector(parts_.count, MPI_REQUEST_NULL)};
  places_.reserve(most_places);
  for (std::size_t part = 0; part < parts_.count; ++part)
    init(MPI_BOTTOM, 1, types[part].get(), part, &place.requests[part]);
  places_.insert(places_.begin(), std::move(place));
}

void PlacedRequests::start_first(std::uint64_t seq, Lies lies, std::size_t bytes) {
  if (begun_ <= seq) {
    assert(!active_);
    begun_ = seq + 1;
    active_ = (lies == Lies::in_slot ? slot_requests_ : places_.front().requests).data();
    lies_ = lies;
    started_ = done_ = 0;
  }
  assert(lies == lies_);
  for (; started_ < parts_.count && end_of(started_) <= bytes; ++started_)
    mpi_backend::start(*world_, &active_[started_]);
}

bool PlacedRequests::is_complete() {
  if (!active_) return true;
  while (done_ < started_ && mpi_backend::is_complete(*world_, &active_[done_])) ++done_;
  if (done_ == parts_.count) active_ = nullptr;
  return !active_;
}

bool PlacedRequests::cancel() {
  if (is_complete()) return true;
  if (!std::exchange(is_cancelled_, true))
    for (std::size_t part = done_; part < started_; ++part) check(MPI_Cancel(&active_[part]), "MPI_Cancel");
  world_->taint();  // a message may come that nobody takes
  return is_complete();
}

void PlacedRequests::close() {
  const bool is_over = spec_.direction == Direction::send ? is_complete() : cancel();
  if (!is_over) {
    std::vector<MPI_Request> unfinished;
    for (; done_ < started_; ++done_)
      if (!mpi_backend::is_complete(*world_, &active_[done_]))
        unfinished.push_back(std::exchange(active_[done_], MPI_REQUEST_NULL));
    if (!unfinished.empty()) world_->adopt(std::move(unfinished), std::move(memory_));
  }
  for (Place& place : places_)
    for (MPI_Request& request : place.requests) free_request(&request);
  for (MPI_Request& request : slot_requests_) free_request(&request);
}

class PlacedSender final : public SendingEnd {
 public:
  PlacedSender(std::shared_ptr<World> world, const ChannelSpec& spec, int tag, std::size_t part_bytes)
      : requests_(std::move(world), spec, tag, part_bytes) {}

  void place(std::span<const Blocks> blocks) override { requests_.place(blocks); }
  std::byte* send_slot(std::uint64_t) override { return requests_.is_complete() ? requests_.slot() : nullptr; }
  void put_first(std::uint64_t seq, std::size_t bytes) override { requests_.start_first(seq, Lies::in_slot, bytes); }
  void put(std::uint64_t seq, std::size_t) override { requests_.start(seq, Lies::in_slot); }
  void put_placed(std::uint64_t seq) override { requests_.start(seq, Lies::in_place); }
  void put_in_place(std::uint64_t, const std::byte*, std::size_t) override { refuse_direction("put_in_place"); }
  bool is_sent(std::uint64_t) override { return requests_.is_complete(); }

 private:
  PlacedRequests requests_;
};

class PlacedReceiver final : public ReceivingEnd {
 public:
  PlacedReceiver(std::shared_ptr<World> world, const ChannelSpec& spec, int tag, std::size_t part_bytes)
      : requests_(std::move(world), spec, tag, part_bytes) {}

  void place(std::span<const Blocks> blocks) override { requests_.place(blocks); }
  void expect(std::uint64_t seq, Lies lies) override { requests_.start(seq, lies); }
  bool give_up(std::uint64_t) override { return requests_.give_up(); }
  const std::byte* arrived(std::uint64_t) override { return requests_.is_complete() ? requests_.slot() : nullptr; }
  std::span<const std::byte> arrived_first(std::uint64_t) override { return requests_.first_bytes(); }
  void release(std::uint64_t) override {}

 private:
  PlacedRequests requests_;
};

}  // namespace

std::unique_ptr<Channel> placed_sending_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag,
                                            std::size_t part_bytes) {
  return std::make_unique<PlacedSender>(std::move(world), spec, tag, part_bytes);
}

std::unique_ptr<Channel> placed_receiving_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag,
                                              std::size_t part_bytes) {
  return std::make_unique<PlacedReceiver>(std::move(world), spec, tag, part_bytes);
}

}  // namespace kplan::transport::mpi_backend
