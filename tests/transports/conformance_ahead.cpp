// Messages of which the first bytes go ahead of the rest, where a transport has them go.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/transports/ranks.hpp"

using namespace kplan::tests;

namespace {

/// One end of a channel from rank 0 to rank 1, which say that so many bytes may go ahead; null on other ranks.
std::unique_ptr<Channel> open_end(Transport& transport, std::size_t capacity, int slots, std::size_t sent_ahead,
                                  std::size_t received_ahead) {
  std::vector<ChannelSpec> specs;
  if (transport.rank() == 0) specs.push_back({1, 6, capacity, slots, Direction::send, false, {}, sent_ahead});
  if (transport.rank() == 1) specs.push_back({0, 6, capacity, slots, Direction::receive, false, {}, received_ahead});
  auto channels = transport.open(specs, soon());
  return channels.empty() ? nullptr : std::move(channels[0]);
}

/// In one of the ways that there are; returns how many bytes it has.
void send_somehow(Transport& transport, Channel& channel, std::uint64_t seq, std::size_t capacity,
                  std::vector<std::byte>& region, std::minstd_rand& random) {
  std::byte* const slot = wait_for(transport, "a slot", [&] { return channel.send_slot(seq); });
  const auto way = seq % 5;
  if (way == 3) {  // from elsewhere
    wait_for(transport, "the last one to be sent", [&] { return seq == 0 || channel.is_sent(seq - 1); });
    fill(region.data(), capacity, 9, seq);
    return channel.put_in_place(seq, region.data(), capacity);
  }
  fill(slot, capacity, 9, seq);
  for (std::size_t first = 0; way < 2 && first < capacity;) {
    first = std::min(capacity, first + 1 + random() % (capacity / 3 + 1));
    channel.put_first(seq, first);
    if (random() % 2 == 0) transport.progress();
  }
  channel.put(seq, way == 4 ? capacity / 3 : capacity);
}

void receive_somehow(Transport& transport, Channel& channel, std::uint64_t seq, std::size_t capacity) {
  const std::size_t bytes = seq % 5 == 4 ? capacity / 3 : capacity;
  std::size_t come = 0;
  const std::byte* const message = wait_for(transport, "a message", [&] {
    const auto first = channel.arrived_first(seq);
    claim(first.empty() || (first.size() >= come && first.size() < capacity), "more and more of it comes");
    come = std::max(come, first.size());
    claim_filled(first.data(), std::min(first.size(), bytes), 9, seq);
    return channel.arrived(seq);
  });
  claim(channel.arrived_first(seq).empty(), "nothing is ahead of a message that is here");
  claim_filled(message, bytes, 9, seq);
  channel.release(seq);
}

}  // namespace

TEST_CASE("messages come whole, however much of them goes ahead", "[conformance]") {
  for (const std::size_t capacity : {std::size_t{30}, std::size_t{5000}, std::size_t{300000}})
    for (const int slots : {1, 3})
      for (const auto& [sent_ahead, received_ahead] : {std::pair{capacity / 7, capacity / 7},
                                                       {capacity / 3, capacity / 5},
                                                       {capacity / 5, std::size_t{0}},
                                                       {std::size_t{0}, capacity / 2},
                                                       {2 * capacity, 2 * capacity},
                                                       {capacity - 1, 3 * capacity}})
        on_ranks(2, [&](Transport& transport) {
          const auto channel = open_end(transport, capacity, slots, sent_ahead, received_ahead);
          std::minstd_rand random(static_cast<unsigned>(capacity));
          std::vector<std::byte> region(capacity);
          for (std::uint64_t seq = 0; seq < 40 && channel; ++seq) {
            if (transport.rank() == 0) send_somehow(transport, *channel, seq, capacity, region, random);
            else receive_somehow(transport, *channel, seq, capacity);
          }
          if (transport.rank() == 0) wait_for(transport, "all to be sent", [&] { return channel->is_sent(39); });
          meet(transport);
        });
}

TEST_CASE("what goes ahead comes before the rest is sent", "[conformance]") {
  constexpr std::size_t capacity = 1000000;
  on_ranks(2, [](Transport& transport) {
    const std::size_t ahead = transport.ahead_bytes(1 - transport.rank(), capacity, /*is_placed=*/false);
    if (ahead == 0) return meet(transport);
    claim(ahead < capacity, "it is a part");
    const auto channel = open_end(transport, capacity, 1, ahead, ahead);
    for (std::uint64_t seq = 0; seq < 5; ++seq) {
      if (transport.rank() == 0) {
        fill(wait_for(transport, "a slot", [&] { return channel->send_slot(seq); }), capacity, 9, seq);
        channel->put_first(seq, 2 * ahead - 1);
      } else {
        const std::byte* const first = wait_for(transport, "what goes ahead", [&] {
          return channel->arrived_first(seq).size() >= ahead ? channel->arrived_first(seq).data() : nullptr;
        });
        claim(channel->arrived_first(seq).size() == ahead, "what is not given has not come");
        claim_filled(first, ahead, 9, seq);
      }
      meet(transport);
      if (transport.rank() == 0) channel->put(seq, capacity);
      else receive(transport, *channel, seq, capacity, 9);
    }
    meet(transport);
  });
}

TEST_CASE("a channel may be closed while some of a message has gone ahead", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    constexpr std::size_t capacity = 1000000;
    auto channel = open_end(transport, capacity, 1, 100000, 100000);
    if (transport.rank() == 0) {
      fill(wait_for(transport, "a slot", [&] { return channel->send_slot(0); }), capacity, 9, 0);
      channel->put_first(0, 400000);
    }
    channel.reset();
    meet(transport);
    meet(transport);
  });
}
