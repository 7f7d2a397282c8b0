// How it works: a channel's tag is the number of tags used before this call of open plus the channel's lane among those
// of its two ranks; every rank counts the same, since all see all ends. A sparse exchange gets its tags by the same
// count, without a message. Tags are never used twice, because closing is local and a late message must not meet a new
// channel: when they run out, all ranks go on with a new duplicate of the communicator, and the old one lives until its
// last channel or exchange closes.
#include "transports/mpi/transport.hpp"

#include <algorithm>
#include <exception>

#include "kplan/mpi.hpp"
#include "transports/codes.hpp"
#include "transports/environment.hpp"
#include "transports/matching.hpp"
#include "transports/mpi/channel.hpp"
#include "transports/mpi/collective.hpp"
#include "transports/mpi/exchange.hpp"
#include "transports/mpi/placed_channel.hpp"
#include "transports/mpi/sparse_exchange.hpp"
#include "transports/mpi/tags.hpp"
#include "transports/node/transport.hpp"
#include "transports/pause.hpp"

namespace kplan::transport {
namespace mpi_backend {
namespace {

bool shares_cores(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  int ranks = 0;
  check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  check(MPI_Comm_size(node, &ranks), "MPI_Comm_size");
  check(MPI_Comm_free(&node), "MPI_Comm_free");
  return is_oversubscribed(ranks);
}

/// Of how many bytes the messages to MPI are that a message of a channel falls into. Open MPI sends up to some 4000
/// bytes through shared memory without asking the receiver; a little more goes faster as several messages. Where one
/// end is placed, or some of it goes ahead, that tells.
std::size_t best_part(const ChannelSpec& spec, std::size_t ahead_bytes, bool has_placed_end) {
  constexpr std::size_t longest_unasked = 4000, longest_in_parts = 8192;
  const std::size_t bytes = spec.capacity_bytes;
  if (spec.may_leave_messages) return bytes;  // a part without bytes would say that the channel ends
  if (ahead_bytes > 0) return ahead_bytes;
  if (has_placed_end) return bytes;
  return bytes <= longest_in_parts ? std::min(bytes, longest_unasked) : bytes;
}

class MpiTransport final : public Backend {
 public:
  explicit MpiTransport(std::shared_ptr<World> world)
      : world_(std::move(world)), is_oversubscribed_(shares_cores(world_->comm())) {}

  void require_usable() const override;
  std::string_view name() const override { return "mpi"; }
  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }
  std::vector<std::string> allgather(std::string_view mine, Clock::time_point deadline) override;
  std::vector<std::unique_ptr<Channel>> open(std::span<const ChannelSpec> specs, Clock::time_point deadline) override;
  std::unique_ptr<SparseExchange> open_exchange(Clock::time_point deadline, Use use) override;
  bool has_collectives() const override { return true; }
  std::unique_ptr<Collective> open_collective(const CollectiveSpec& spec, Clock::time_point deadline) override;
  const std::shared_ptr<InFlightList>& in_flight() const override { return world_->in_flight(); }
  int best_slots(int, std::size_t bytes) const override {
    // Only the last slot's messages wait to be received, see sender.cpp, which takes as long as three others: of short
    // ones there are many slots, of which those are in use that the receiver is behind. MPI sends long ones when they
    // are received, and a second slot would be in nobody's cache.
    constexpr std::size_t longest_buffered = 65536, all_slots_bytes = 32768, most_slots = 64;
    return bytes > longest_buffered ? 1
                                    : static_cast<int>(std::clamp<std::size_t>(all_slots_bytes / bytes, 2, most_slots));
  }
  std::size_t best_shared_bytes(int) const override { return 2048; }
  std::size_t ahead_bytes(int, std::size_t bytes, bool is_placed) const override {
    constexpr std::size_t most_parts = 16;
    if (ahead_.bytes == 0 || bytes <= ahead_.bytes || (is_placed && !ahead_.may_be_placed)) return 0;
    return std::max(ahead_.bytes, bytes / most_parts);
  }
  bool places_messages(int) const override { return true; }
  [[gnu::hot]] void progress() override { world_->drive(); }
  void pause(unsigned idle_rounds) override {
    constexpr unsigned long_wait = 1u << 15;
    if (idle_rounds == long_wait) [[unlikely]]
      world_->posted_receives().post_all();
    // MPI moves long messages only while it is asked to: a rank that sleeps, or yields to another process, holds up
    // both ends.
    pause_thread(idle_rounds, is_oversubscribed_, {.spins = 1u << 14, .yields = 1u << 16});
  }
  const bool& has_ended() const override { return World::are_shut(); }
  std::optional<int> dead() override { return std::nullopt; }  // MPI tells of no death

 private:
  int tags_left() const { return world_->limits().max_tag - next_tag_ + 1; }
  int reserve_tags(int count);
  void warm_peers(std::span<const ChannelSpec> specs, Clock::time_point deadline);

  std::shared_ptr<World> world_;
  int next_tag_ = first_channel_tag;
  std::vector<bool> is_warm_to_, is_warm_from_;  // by rank, on the communicator in use
  bool is_oversubscribed_;
  GoingAhead ahead_ = going_ahead_from_environment();
};

void MpiTransport::require_usable() const {
  Backend::require_usable();
  if (!world_->is_open())
    throw TransportError(codes::unusable, "a collective call after MPI was finalised; finalise later");
}

std::vector<std::string> MpiTransport::allgather(std::string_view mine, Clock::time_point deadline) {
  require_usable();
  return or_fail([&] { return mpi_backend::allgather(*world_, mine, deadline); });
}

/// The first of `count` tags that were never used on world_, the same on every rank. Collective.
int MpiTransport::reserve_tags(int count) {
  const int max_tag = world_->limits().max_tag;
  if (count > max_tag - first_channel_tag + 1)
    throw TransportError(codes::too_large, std::to_string(count) + " channels between two ranks; mpi has tags for " +
                                               std::to_string(max_tag - first_channel_tag + 1));
  if (count > tags_left()) {
    world_ = or_fail([&] {
      return std::make_shared<World>(world_->comm(), world_->limits(), world_->session(), world_->in_flight());
    });
    is_warm_to_.clear();
    is_warm_from_.clear();
    next_tag_ = first_channel_tag;
  }
  const int first = next_tag_;
  next_tag_ += count;
  return first;
}

void MpiTransport::warm_peers(std::span<const ChannelSpec> specs, Clock::time_point deadline) {
  is_warm_to_.resize(static_cast<std::size_t>(size()));
  is_warm_from_.resize(static_cast<std::size_t>(size()));
  std::vector<int> receivers;
  std::vector<int> senders;
  for (const ChannelSpec& spec : specs) {
    const bool sends = spec.direction == Direction::send;
    std::vector<bool>::reference is_warm = (sends ? is_warm_to_ : is_warm_from_)[static_cast<std::size_t>(spec.peer)];
    if (!is_warm) (sends ? receivers : senders).push_back(spec.peer);
    is_warm = true;
  }
  mpi_backend::warm(*world_, receivers, senders, deadline);
}

std::vector<std::unique_ptr<Channel>> MpiTransport::open(std::span<const ChannelSpec> specs,
                                                         Clock::time_point deadline) {
  require_usable();
  const auto told = or_fail([&] { return tell(*this, announcements_of(specs, rank(), size()), deadline); });
  const Matching matching = match(specs, told, rank(), size());
  const int first_tag = reserve_tags(agree(*this, matching.problem, deadline, matching.lane_count));

  std::vector<std::unique_ptr<Channel>> channels;
  Problem problem;
  try {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const bool sends = specs[i].direction == Direction::send;
      const int tag = first_tag + matching.lanes[i];
      const std::size_t part_bytes = best_part(specs[i], matching.ahead_bytes[i], matching.has_placed_end[i]);
      const auto open_end = specs[i].is_placed ? (sends ? placed_sending_end : placed_receiving_end)
                                               : (sends ? sending_end : receiving_end);
      channels.push_back(open_end(world_, specs[i], tag, part_bytes));
    }
  } catch (const std::exception& error) {
    problem = {without_code(error)};
  }
  try {
    agree(*this, problem, deadline);  // every receive is started when the first message is sent
  } catch (...) {
    world_->taint();  // an end says that it closes, and there may be no other
    throw;
  }
  or_fail([&] { warm_peers(specs, deadline); });
  return channels;
}

std::unique_ptr<SparseExchange> MpiTransport::open_exchange(Clock::time_point deadline, Use) {
  require_usable();
  // Duplicating blocks and moves nothing on, so all ranks should have come to it.
  if (tags_left() < exchange_tags::count) (void)allgather({}, deadline);
  return sparse_exchange(world_, reserve_tags(exchange_tags::count));
}

std::unique_ptr<Collective> MpiTransport::open_collective(const CollectiveSpec& spec, Clock::time_point deadline) {
  // Duplicating blocks and moves nothing on, so all ranks should have come to it.
  (void)allgather({}, deadline);
  return or_fail([&] { return mpi_backend::open_collective(*world_, spec); });
}

}  // namespace

std::shared_ptr<Backend> make_transport(MPI_Comm comm, Limits limits, std::shared_ptr<Session> session) {
  if (!is_mpi_up())
    throw PlanError(codes::bad_comm,
                    "MPI is not initialised, or finalised already; make the transport between MPI_Init "
                    "and MPI_Finalize, or use mpi_world()");
  if (comm == MPI_COMM_NULL)
    throw PlanError(codes::bad_comm, "the communicator is MPI_COMM_NULL; pass one that this rank belongs to");
  int is_inter = 0;
  check(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
  if (is_inter != 0)
    throw PlanError(codes::bad_comm, "the communicator joins two groups; merge it by MPI_Intercomm_merge before");
  return std::make_shared<MpiTransport>(std::make_shared<World>(comm, limits, std::move(session)));
}

}  // namespace mpi_backend

std::shared_ptr<Transport> mpi(MPI_Comm comm) {
  return node_path::with_node_path(mpi_backend::make_transport(comm, {}, nullptr));
}

}  // namespace kplan::transport
