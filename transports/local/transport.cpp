// How it works: each rank's transport is a view of the world they share. To open channels, the ranks exchange what they
// want, the sender of each channel makes its ring, and after a second exchange the receivers fetch them. A sparse
// exchange is opened without waiting for anyone: the first rank to come makes its board.
#include "kplan/transport.hpp"

#include <cstring>
#include <exception>

#include "transports/codes.hpp"
#include "transports/environment.hpp"
#include "transports/in_flight.hpp"
#include "transports/local/sparse_exchange.hpp"
#include "transports/local/world.hpp"
#include "transports/matching.hpp"
#include "transports/pause.hpp"
#include "transports/shared/ring.hpp"

namespace kplan::transport {
namespace local_backend {
namespace {

/// Threads call memory by its address.
class Addresses final : public RegionNames {
 public:
  std::optional<RegionName> name_of(const std::byte* region) override {
    return RegionName{0, reinterpret_cast<std::uintptr_t>(region)};
  }
  const std::byte* find(int, const RegionName& name) override {
    return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(name.offset));
  }
  bool copy(int, RegionCursor theirs, RegionCursor mine) override {
    while (!mine.is_at_end()) {
      const iovec from = theirs.region(), to = mine.region();
      const std::size_t bytes = std::min(from.iov_len, to.iov_len);
      std::memcpy(to.iov_base, from.iov_base, bytes);
      theirs.advance(bytes);
      mine.advance(bytes);
    }
    return true;
  }
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<World> world, int rank)
      : world_(std::move(world)), rank_(rank), distances_(far_from_environment(), world_->share_cores()) {}
  ~LocalTransport() override { world_->leave(rank_); }

  std::size_t piece_bytes(int) const override { return piece_bytes_; }
  std::size_t non_temporal_bytes(int) const override { return non_temporal_bytes_; }
  bool delivers_alone(int) const override { return true; }
  int best_slots(int, std::size_t bytes) const override {
    return best_ring_slots(bytes, size(), world_->share_cores());
  }
  std::size_t best_shared_bytes(int peer) const override { return peer == rank_ ? 0 : best_shared_ring_bytes; }
  int most_receivers(int) const override { return size() - 1; }
  bool lends_memory(int) const override { return true; }
  bool can_lend(const std::byte*) const override { return true; }
  std::string_view name() const override { return "local"; }
  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }

  std::vector<std::string> allgather(std::string_view mine, Clock::time_point deadline) override {
    return world_->allgather(rank_, mine, deadline, in_flight_);
  }

  std::vector<std::unique_ptr<Channel>> open(std::span<const ChannelSpec> specs, Clock::time_point deadline) override;
  std::unique_ptr<SparseExchange> open_exchange(Clock::time_point, Use) override {
    return sparse_exchange(world_->board(opened_exchanges_++), rank_);
  }

  void progress() override { in_flight_.move_on(); }
  void keep_moving(InFlight& moved) override { in_flight_.add(moved); }
  void let_go(InFlight& moved) override { in_flight_.remove(moved); }
  void pause(unsigned idle_rounds) override { pause_thread(idle_rounds, world_->share_cores()); }
  std::optional<int> dead() override { return world_->first_gone(); }
  bool is_dead(int rank) override { return world_->is_gone(rank); }

 private:
  std::shared_ptr<World> world_;
  int rank_;
  std::size_t piece_bytes_ = piece_bytes_from_environment();
  std::size_t non_temporal_bytes_ = non_temporal_bytes_from_environment();
  Distances distances_;
  std::shared_ptr<RegionNames> names_ = std::make_shared<Addresses>();
  std::uint64_t opened_exchanges_ = 0;
  InFlightList in_flight_;
};

std::vector<std::unique_ptr<Channel>> LocalTransport::open(std::span<const ChannelSpec> specs,
                                                           Clock::time_point deadline) {
  const std::vector<Announcement> told = tell(*this, announcements_of(specs, rank_, size()), deadline);
  Problem problem = match(specs, told, rank_, size(), Reach::several).problem;

  std::vector<std::unique_ptr<Channel>> channels(specs.size());
  try {
    for (std::size_t i = 0; i < specs.size() && !problem; ++i) {
      if (specs[i].direction != Direction::send) continue;
      const RingMemory ring = new_ring(specs[i]);
      channels[i] = sending_end(ring, specs[i], names_, distances_.to(specs[i].peer));
      each_receiver(specs[i], [&](int receiver, ReceiverPlace place) {
        world_->offer({rank_, receiver, specs[i].id}, {ring, place});
      });
    }
  } catch (const std::exception& error) {
    problem = {without_code(error)};
  }
  agree(*this, problem, deadline);

  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].direction == Direction::receive)
      channels[i] = receiving_end(world_->take({specs[i].peer, rank_, specs[i].id}), specs[i], names_,
                                  distances_.from(specs[i].peer));
  }
  return channels;
}

}  // namespace
}  // namespace local_backend

std::vector<std::shared_ptr<Transport>> local(int ranks) {
  if (ranks < 1)
    throw PlanError(codes::bad_ranks, "a local world of " + std::to_string(ranks) + " ranks; it needs at least 1");
  auto world = std::make_shared<local_backend::World>(ranks);
  std::vector<std::shared_ptr<Transport>> transports;
  for (int rank = 0; rank < ranks; ++rank)
    transports.push_back(std::make_shared<local_backend::LocalTransport>(world, rank));
  return transports;
}

}  // namespace kplan::transport
