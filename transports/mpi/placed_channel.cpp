// How it works: one persistent request for each of the last few places where messages lay; one message is under way at
// a time.
// What travels is the same bytes whether the other end packs or not. A receive is started when the message is expected,
// not before, since the memory is the program's until then. Sends are synchronous, so that none runs ahead.
#include "transports/mpi/placed_channel.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/ends.hpp"
#include "transports/mpi/memory_type.hpp"

namespace kplan::transport::mpi_backend {
namespace {

/// A persistent request on memory that its owner describes.
class PlacedRequest final : private RequestHolder {
 public:
  PlacedRequest(std::shared_ptr<World> world, const ChannelSpec& spec, int tag)
      : world_(std::move(world)), spec_(spec), tag_(tag) {
    world_->enter(this);
  }
  ~PlacedRequest() {
    world_->end(this, [] {});
  }
  PlacedRequest(const PlacedRequest&) = delete;
  PlacedRequest& operator=(const PlacedRequest&) = delete;

  void place(std::span<const Blocks> blocks) {
    assert(!is_active_);
    const auto known =
        std::ranges::find_if(places_, [&](const Place& p) { return std::ranges::equal(p.blocks, blocks); });
    if (known != places_.end()) {
      std::rotate(places_.begin(), known, known + 1);
      return;
    }
    const MemoryType type = memory_type(blocks);
    if (places_.size() == most_places) {
      free(places_.back());
      places_.pop_back();
    }
    Place& place = *places_.insert(places_.begin(), {{blocks.begin(), blocks.end()}, MPI_REQUEST_NULL});
    if (spec_.direction == Direction::send)
      check(MPI_Ssend_init(MPI_BOTTOM, 1, type.get(), spec_.peer, tag_, world_->comm(), &place.request),
            "MPI_Ssend_init");
    else
      check(MPI_Recv_init(MPI_BOTTOM, 1, type.get(), spec_.peer, tag_, world_->comm(), &place.request),
            "MPI_Recv_init");
  }
  void start() {
    assert(!is_active_);
    check(MPI_Start(request()), "MPI_Start");
    is_active_ = true;
  }
  /// Whether nothing is under way.
  bool is_complete() {
    if (!is_active_) return true;
    int is_done = 0;
    check(MPI_Test(request(), &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done == 0) world_->note_driven();
    return !(is_active_ = is_done == 0);
  }
  /// Whether nothing is under way any more.
  bool cancel() {
    if (is_complete()) return true;
    if (!std::exchange(is_cancelled_, true)) check(MPI_Cancel(request()), "MPI_Cancel");
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

  MPI_Request* request() { return &places_.front().request; }
  static void free(Place& place) {
    if (place.request != MPI_REQUEST_NULL) check(MPI_Request_free(&place.request), "MPI_Request_free");
  }
  void close() override {
    const bool is_over = spec_.direction == Direction::send ? is_complete() : cancel();
    if (!is_over) world_->adopt({std::exchange(*request(), MPI_REQUEST_NULL)}, SlotMemory());
    for (Place& place : places_) free(place);
  }

  std::shared_ptr<World> world_;
  ChannelSpec spec_;
  int tag_;
  std::vector<Place> places_;  ///< the one in use first
  bool is_active_ = false, is_cancelled_ = false;
};

/// What is given where an address only says that it is time.
std::byte nothing{};

class PlacedSender final : public SendingEnd {
 public:
  PlacedSender(std::shared_ptr<World> world, const ChannelSpec& spec, int tag)
      : request_(std::move(world), spec, tag) {}

  void place(std::span<const Blocks> blocks) override { request_.place(blocks); }
  std::byte* send_slot(std::uint64_t) override { return request_.is_complete() ? &nothing : nullptr; }
  void put(std::uint64_t, std::size_t) override { request_.start(); }
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
  void expect(std::uint64_t) override { request_.start(); }
  bool give_up(std::uint64_t) override { return request_.cancel(); }
  const std::byte* arrived(std::uint64_t) override { return request_.is_complete() ? &nothing : nullptr; }
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
