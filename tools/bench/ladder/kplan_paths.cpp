// How it works: the lower paths drive channels of the transports as the engine does; the last is a plan.
#include <cstring>

#include "kplan/engine.hpp"
#include "kplan/mpi.hpp"
#include "tools/bench/ladder/paths.hpp"

namespace kplan::bench {
namespace {

enum class Way { copied, in_place };

/// A channel to the other rank and one from it.
class ChannelPair {
 public:
  ChannelPair(const Route& route, Ends& ends, Way way)
      : transport_(route.transport),
        ends_(ends),
        way_(way),
        ends_when_sent_(route.ends_when_sent || way == Way::in_place),
        rank_(transport_->rank()) {
    transport::ChannelSpec to{1 - rank_, 0, ends.out.size_bytes(), 2, transport::Direction::send}, from = to;
    from.direction = transport::Direction::receive;
    const transport::ChannelSpec specs[] = {to, from};
    auto channels = transport_->open(specs, transport::Clock::now() + transport::timeout_from_environment());
    to_ = std::move(channels[0]);
    from_ = std::move(channels[1]);
  }

  void echo() {
    if (rank_ == 0) send(ends_.out.data());
    receive();
    if (rank_ == 1) send(ends_.in.data());
    finish();
  }
  void both_ways() {
    send(ends_.out.data());
    receive();
    finish();
  }

 private:
  template <class Ready>
  void wait_for(const Ready& ready) {
    for (unsigned idle = 1; !ready(); ++idle) {
      transport_->progress();
      transport_->pause(idle);
    }
  }

  void send(const std::byte* region) {
    std::byte* slot = nullptr;
    wait_for([&] { return (slot = to_->send_slot(run_)) != nullptr; });
    const std::size_t bytes = ends_.out.size_bytes();
    if (way_ == Way::in_place) return to_->put_in_place(run_, region, bytes);
    std::memcpy(slot, region, bytes);
    to_->put(run_, bytes);
  }

  void receive() {
    const std::byte* message = nullptr;
    wait_for([&] { return (message = from_->arrived(run_)) != nullptr; });
    std::memcpy(ends_.in.data(), message, ends_.in.size_bytes());
    from_->release(run_);
  }

  void finish() {
    if (ends_when_sent_) wait_for([&] { return to_->is_sent(run_); });
    ++run_;
  }

  std::shared_ptr<transport::Transport> transport_;
  std::unique_ptr<transport::Channel> to_, from_;
  Ends& ends_;
  Way way_;
  bool ends_when_sent_;
  int rank_;
  std::uint64_t run_ = 0;
};

struct BoundPlans {
  Engine engine;
  Executable echo, both_ways;
};

PlanBuilder with_buffers(const std::string& name) {
  PlanBuilder builder(name);
  builder.parameter("n", Scalar::i64).buffer("given", Scalar::u8, {"n"}).buffer("got", Scalar::u8, {"n"});
  return builder;
}

/// The memory is what the engine has allocated where it is of the same transport.
std::shared_ptr<BoundPlans> bound_plans(std::shared_ptr<transport::Transport> transport, Ends& ends) {
  PlanBuilder echo = with_buffers("echo");
  echo.communicate("there", "got[:]@1 <<= given[:]@0");
  echo.communicate("back", "got[:]@0 <<= got[:]@1");
  PlanBuilder both = with_buffers("both-ways");
  both.communicate("exchange", "got[:]@1 - r <<= given[:]@r where r in world");
  const Values values{{"n", ends.out.size_bytes()}};
  Engine engine(std::move(transport));
  Executable there_and_back = engine.compile(echo.build(), values), exchange = engine.compile(both.build(), values);
  for (Executable* e : {&there_and_back, &exchange}) {
    e->bind("given", ends.out.as<std::uint8_t>());
    e->bind("got", ends.in.as<std::uint8_t>());
  }
  return std::make_shared<BoundPlans>(BoundPlans{std::move(engine), std::move(there_and_back), std::move(exchange)});
}

}  // namespace

std::vector<Path> kplan_paths(const Team& pair, const std::vector<Route>& routes, Ends& ends) {
  std::vector<Path> out;
  const auto add = [&](const Route& route, const std::string& name, Way way) {
    auto channels = std::make_shared<ChannelPair>(route, ends, way);
    drive_together(pair);
    out.push_back({route.name + name, [channels] { channels->echo(); }, [channels] { channels->both_ways(); }});
  };
  for (const Route& route : routes) {
    add(route, ", channel", Way::copied);
    if (route.is_in_place) add(route, ", channel, in place", Way::in_place);
  }
  const auto add_plans = [&](const std::string& name, std::shared_ptr<transport::Transport> transport) {
    auto plans = bound_plans(std::move(transport), ends);
    out.push_back({name, [plans] { plans->echo.run(); }, [plans] { plans->both_ways.run(); }});
  };
  add_plans("kplan, plan", transport::mpi(pair.comm));
  add_plans("kplan, plan, allocated", pair.transport);
  return out;
}

}  // namespace kplan::bench
