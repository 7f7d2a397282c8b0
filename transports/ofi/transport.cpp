// How it works: to open channels, the ranks exchange what they want, make their ends, tell each other the numbers of
// these and the addresses of the receivers' slots, and connect to peers that they have not spoken to.
#include "transports/ofi/transport.hpp"

#include <exception>
#include <map>
#include <tuple>

#include "transports/bytes.hpp"
#include "transports/matching.hpp"
#include "transports/node/transport.hpp"
#include "transports/ofi/channel.hpp"
#include "transports/ofi/sparse_exchange.hpp"
#include "transports/pause.hpp"

namespace kplan::transport {
namespace ofi_backend {
namespace {

class OfiTransport final : public Backend {
 public:
  explicit OfiTransport(std::shared_ptr<World> world)
      : world_(std::move(world)), is_oversubscribed_(transport::is_oversubscribed(world_->neighbours())) {}

  std::string_view name() const override { return "ofi"; }
  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }
  std::vector<std::string> allgather(std::string_view mine, Clock::time_point deadline) override;
  std::vector<std::unique_ptr<Channel>> open(std::span<const ChannelSpec> specs, Clock::time_point deadline) override;
  std::unique_ptr<SparseExchange> open_exchange(Clock::time_point, Use) override {
    require_usable();
    return sparse_exchange(world_);
  }
  const std::shared_ptr<InFlightList>& in_flight() const override { return world_->mailboxes().in_flight(); }
  std::size_t best_shared_bytes(int) const override { return 2048; }
  void progress() override { world_->progress(); }
  void pause(unsigned idle_rounds) override { pause_thread(idle_rounds, is_oversubscribed_); }
  std::optional<int> dead() override { return world_->dead(); }
  bool is_dead(int rank) override { return world_->is_dead(rank); }

 private:
  void introduce(std::span<const ChannelSpec> specs, std::span<const std::uint32_t> numbers, const Matching& matching,
                 Clock::time_point deadline);

  std::shared_ptr<World> world_;
  bool is_oversubscribed_;
};

std::vector<std::string> OfiTransport::allgather(std::string_view mine, Clock::time_point deadline) {
  require_usable();
  return or_fail([&] { return world_->allgather(mine, deadline); });
}

/// Tells the peers of the own ends, and the own ends of their peers.
void OfiTransport::introduce(std::span<const ChannelSpec> specs, std::span<const std::uint32_t> numbers,
                             const Matching& matching, Clock::time_point deadline) {
  std::map<int, std::string> by_peer;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    append(by_peer[specs[i].peer], world_->links().at(numbers[i]).introduction());
  std::vector<Announcement> mine;
  for (auto& [peer, bytes] : by_peer) mine.push_back({peer, std::move(bytes)});
  std::map<std::tuple<int, int, Direction>, Introduction> others;
  for (const Announcement& a : tell(*this, mine, deadline))
    for (std::string_view in = a.bytes; !in.empty();) {
      const auto theirs = take<Introduction>(in);
      others[{a.rank, theirs.lane, theirs.direction}] = theirs;
    }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Direction there = specs[i].direction == Direction::send ? Direction::receive : Direction::send;
    world_->links().at(numbers[i]).meet(others.at({specs[i].peer, matching.lanes[i], there}));
  }
}

std::vector<std::unique_ptr<Channel>> OfiTransport::open(std::span<const ChannelSpec> specs,
                                                         Clock::time_point deadline) {
  require_usable();
  const auto told = or_fail([&] { return tell(*this, announcements_of(specs, rank(), size()), deadline); });
  const Matching matching = match(specs, told, rank(), size());

  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<std::uint32_t> numbers;
  std::vector<int> peers;
  Problem problem = matching.problem;
  try {
    if (problem) specs = {};
    std::size_t bytes = 0;
    for (const ChannelSpec& spec : specs) {
      if (spec.direction == Direction::receive) bytes += arena_bytes(spec);
    }
    const auto arena = std::make_shared<Arena>(world_->endpoint(), bytes);
    std::size_t offset = 0;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const bool sends = specs[i].direction == Direction::send;
      NewEnd end = sends ? sending_end(world_, specs[i], matching.lanes[i])
                         : receiving_end(world_, specs[i], matching.lanes[i], arena, offset);
      if (!sends) offset += arena_bytes(specs[i]);
      channels.push_back(std::move(end.channel));
      numbers.push_back(end.number);
      peers.push_back(specs[i].peer);
    }
  } catch (const std::exception& error) {
    problem = {without_code(error)};
  }
  agree(*this, problem, deadline);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  or_fail([&] {
    introduce(specs, numbers, matching, deadline);
    world_->warm(peers, deadline);
  });
  return channels;
}

}  // namespace

std::shared_ptr<Backend> make_transport(std::unique_ptr<control::Member> member, Limits limits,
                                        Clock::time_point deadline) {
  return std::make_shared<OfiTransport>(std::make_shared<World>(std::move(member), limits, deadline));
}

}  // namespace ofi_backend

bool has_ofi() { return true; }

std::shared_ptr<Transport> ofi_world() {
  const Clock::time_point deadline = Clock::now() + timeout_from_environment();
  auto member = std::make_unique<control::Member>(control::launch_from_environment(deadline), deadline);
  return node_path::with_node_path(ofi_backend::make_transport(std::move(member), {}, deadline));
}

}  // namespace kplan::transport
