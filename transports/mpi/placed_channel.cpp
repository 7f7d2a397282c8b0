// How it works: one persistent request for each of the last few places where messages lay, and one for the slot; one
// message is under way at a time. What travels is the same bytes wherever they lie at either end. A receive is started
// when the message is expected, not before, since it may go to the program's memory. Sends are synchronous, so that
// none runs ahead.
#include "transports/mpi/placed_channel.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/ends.hpp"
#include "transports/mpi/memory_type.hpp"
#include "transports/mpi/message_type.hpp"

namespace kplan::transport::mpi_backend {
namespace {

/// Persistent requests on memory that its owner describes, and on a slot.
class PlacedRequest final : private RequestHolder {
 public:
  PlacedRequest(std::shared_ptr<World> world, const ChannelSpec& spec, int tag)
      : world_(std::move(world)), spec_(spec), tag_(tag), memory_(spec.capacity_bytes, 1) {
    const MessageType message(spec.capacity_bytes, world_->limits().max_count);
    init(slot(), message.count(), message.type(), &slot_request_);
    world_->enter(this);
  }
  ~PlacedRequest() { world_->end(this); }
  PlacedRequest(const PlacedRequest&) = delete;
  PlacedRequest& operator=(const PlacedRequest&) = delete;

  void place(std::span<const Blocks> blocks) {
    assert(!active_);
    const auto known =
        std::ranges::find_if(places_, [&](const Place& p) { return std::ranges::equal(p.blocks, blocks); });
    if (known != places_.end()) {
      std::rotate(places_.begin(), known, known + 1);
      return;
    }
    const MemoryType type = memory_type(blocks);
    if (places_.size() == most_places) {
      free_request(&places_.back().request);
      places_.pop_back();
    }
    Place place{{blocks.begin(), blocks.end()}, MPI_REQUEST_NULL};
    places_.reserve(most_places);
    init(MPI_BOTTOM, 1, type.get(), &place.request);
    places_.insert(places_.begin(), std::move(place));
  }
  std::byte* slot() const { return memory_.slot(0); }
  void start(Lies lies) {
    assert(!active_);
    MPI_Request* const request = lies == Lies::in_slot ? &slot_request_ : &places_.front().request;
    check(MPI_Start(request), "MPI_Start");
    active_ = request;
  }
  /// Whether nothing is under way.
  bool is_complete() {
    if (active_ && mpi_backend::is_complete(*world_, active_)) active_ = nullptr;
    return !active_;
  }
  /// Whether nothing is under way any more.
  bool cancel() {
    if (is_complete()) return true;
    if (!std::exchange(is_cancelled_, true)) check(MPI_Cancel(active_), "MPI_Cancel");
    world_->taint();  // a message may come that nobody takes
    return is_complete();
  }

 private:
  /// Where messages lie, or lay lately: programs that swap two arrays come back to them.
  struct Place {
    std::vector<Blocks> blocks;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  static constexpr std::size_t most_places = 4;

  void init(void* memory, int count, MPI_Datatype type, MPI_Request* request) const {
    if (spec_.direction == Direction::send)
      check(MPI_Ssend_init(memory, count, type, spec_.peer, tag_, world_->comm(), request), "MPI_Ssend_init");
    else check(MPI_Recv_init(memory, count, type, spec_.peer, tag_, world_->comm(), request), "MPI_Recv_init");
  }
  void close() override {
    const bool is_over = spec_.direction == Direction::send ? is_complete() : cancel();
    if (!is_over) world_->adopt({std::exchange(*active_, MPI_REQUEST_NULL)}, std::move(memory_));
    for (Place& place : places_) free_request(&place.request);
    free_request(&slot_request_);
  }
  void leak() override { memory_.leak(); }

  std::shared_ptr<World> world_;
  ChannelSpec spec_;
  int tag_;
  SlotMemory memory_;
  MPI_Request slot_request_ = MPI_REQUEST_NULL;
  std::vector<Place> places_;      ///< the one in use first
  MPI_Request* active_ = nullptr;  ///< the one that is under way, if one is
  bool is_cancelled_ = false;
};

class PlacedSender final : public SendingEnd {
 public:
  PlacedSender(std::shared_ptr<World> world, const ChannelSpec& spec, int tag)
      : request_(std::move(world), spec, tag) {}

  void place(std::span<const Blocks> blocks) override { request_.place(blocks); }
  std::byte* send_slot(std::uint64_t) override { return request_.is_complete() ? request_.slot() : nullptr; }
  void put(std::uint64_t, std::size_t) override { request_.start(Lies::in_slot); }
  void put_placed(std::uint64_t) override { request_.start(Lies::in_place); }
  void put_in_place(std::uint64_t, const std::byte*, std::size_t) override { refuse_direction("put_in_place"); }
  bool is_sent(std::uint64_t) override { return request_.is_complete(); }

 private:
  PlacedRequest request_;
};

class PlacedReceiver final : public ReceivingEnd {
 public:
  PlacedReceiver(std::shared_ptr<World> world, const ChannelSpec& spec, int tag)
      : request_(std::move(world), spec, tag) {}

  void place(std::span<const Blocks> blocks) override { request_.place(blocks); }
  void expect(std::uint64_t, Lies lies) override { request_.start(lies); }
  bool give_up(std::uint64_t) override { return request_.cancel(); }
  const std::byte* arrived(std::uint64_t) override { return request_.is_complete() ? request_.slot() : nullptr; }
  void release(std::uint64_t) override {}

 private:
  PlacedRequest request_;
};

}  // namespace

std::unique_ptr<Channel> placed_sending_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag) {
  return std::make_unique<PlacedSender>(std::move(world), spec, tag);
}

std::unique_ptr<Channel> placed_receiving_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag) {
  return std::make_unique<PlacedReceiver>(std::move(world), spec, tag);
}

}  // namespace kplan::transport::mpi_backend
