// Ends of channels that are placed: messages lie in the caller's memory, or in the slot as at other ends. Where a
// transport places nothing, it says so.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "tests/transports/blocks.hpp"
#include "tests/transports/ranks.hpp"

using namespace kplan::tests;
using kplan::transport::Blocks;
using kplan::transport::Lies;

namespace {

constexpr std::size_t bytes = 240000, memory_bytes = 3 * bytes;

/// Blocks of `bytes` bytes in all, of one of several shapes.
std::vector<Blocks> blocks_in(std::byte* memory, std::uint64_t shape) {
  switch (shape % 4) {
    case 0: return {{memory + 7, {0}, {}, {}, bytes}};
    case 1: return {{memory, {11}, {10, 300}, {72000, 200}, 80}};
    case 2: return {{memory, {480000, 160000, 320000, 0}, {6}, {20000}, 10000}};
    default: {
      Blocks list{memory + 500000, {}, {}, {}, 12};
      for (std::int64_t k = 9999; k >= 0; --k) list.offsets_bytes.push_back(20 * k);
      return {list, {memory + 7, {0}, {100, 300}, {4, 1000}, 4}};
    }
  }
}

/// One end of a channel from rank 0 to rank 1; null on other ranks.
std::unique_ptr<Channel> open_end(Transport& transport, bool is_placed, std::size_t capacity = bytes, int slots = 1,
                                  std::size_t ahead = 0) {
  std::vector<ChannelSpec> specs;
  if (transport.rank() == 0) specs.push_back({1, 5, capacity, slots, Direction::send, is_placed, {}, ahead});
  if (transport.rank() == 1) specs.push_back({0, 5, capacity, slots, Direction::receive, is_placed, {}, ahead});
  auto channels = transport.open(specs, soon());
  return channels.empty() ? nullptr : std::move(channels[0]);
}

bool places_messages(Transport& transport) {
  return transport.rank() > 1 || transport.places_messages(1 - transport.rank());
}

void send_placed(Transport& transport, Channel& channel, std::uint64_t seq, unsigned seed) {
  std::vector<std::byte> memory(memory_bytes, untouched), message(bytes);
  fill(message.data(), bytes, seed, seq);
  const std::vector<Blocks> blocks = blocks_in(memory.data(), seq);
  std::size_t n = 0;
  each_byte(blocks, [&](std::byte& b) { b = message[n++]; });
  claim(n == bytes, "the blocks are the message");
  wait_for(transport, "the turn", [&] { return channel.send_slot(seq); });
  channel.place(blocks);
  channel.put_placed(seq);
  wait_for(transport, "the message to be sent", [&] { return channel.is_sent(seq); });
}

void receive_placed(Transport& transport, Channel& channel, std::uint64_t seq, unsigned seed) {
  std::vector<std::byte> memory(memory_bytes, untouched), message(bytes);
  const std::vector<Blocks> blocks = blocks_in(memory.data(), seq / 3);
  channel.place(blocks);
  if (seq % 5 == 0) {
    for (int k = 0; k < 100; ++k) transport.progress();
    claim(std::ranges::count(memory, untouched) == static_cast<std::ptrdiff_t>(memory_bytes),
          "nothing is written before it is expected");
  }
  channel.expect(seq, Lies::in_place);
  wait_for(transport, "a message", [&] { return channel.arrived(seq); });
  std::size_t n = 0;
  each_byte(blocks, [&](std::byte& b) { message[n++] = std::exchange(b, untouched); });
  claim_filled(message.data(), bytes, seed, seq);
  claim(std::ranges::count(memory, untouched) == static_cast<std::ptrdiff_t>(memory_bytes), "nothing else is written");
  channel.release(seq);
}

}  // namespace

TEST_CASE("placed messages are sent from and received into blocks of any shape, whatever the other end does",
          "[conformance]") {
  for (const auto& [sends, receives, ahead] :
       std::initializer_list<std::tuple<bool, bool, std::size_t>>{{false, false, 0},
                                                                  {false, true, 0},
                                                                  {true, false, 0},
                                                                  {true, true, 0},
                                                                  {false, true, 1001},
                                                                  {true, false, 70000},
                                                                  {true, true, 1001},
                                                                  {true, true, 80000}})
    on_ranks(2, [&](Transport& transport) {
      if (!places_messages(transport)) return meet(transport);
      const auto channel = open_end(transport, transport.rank() == 0 ? sends : receives, bytes, 1, ahead);
      for (std::uint64_t seq = 0; seq < 40 && channel; ++seq) {
        if (transport.rank() == 0) {
          if (sends) send_placed(transport, *channel, seq, 6);
          else send(transport, *channel, seq, bytes, 6);
        } else {
          if (receives) receive_placed(transport, *channel, seq, 6);
          else receive(transport, *channel, seq, bytes, 6);
        }
      }
      meet(transport);
    });
}

TEST_CASE("a placed end takes some messages from its slot", "[conformance]") {
  const auto ahead = GENERATE(std::size_t{0}, std::size_t{1001}, std::size_t{80000});
  on_ranks(2, [=](Transport& transport) {
    if (!places_messages(transport)) return meet(transport);
    const auto channel = open_end(transport, true, bytes, 1, ahead);
    std::minstd_rand random(static_cast<unsigned>(transport.rank() + 1));  // each end by itself
    for (std::uint64_t seq = 0; seq < 40 && channel; ++seq) {
      const bool is_in_place = random() % 3 != 0;
      if (transport.rank() == 0) {
        if (is_in_place) {
          send_placed(transport, *channel, seq, 6);
          continue;
        }
        fill(wait_for(transport, "a slot", [&] { return channel->send_slot(seq); }), bytes, 6, seq);
        for (std::size_t first = random() % bytes; first < bytes; first += 1 + random() % bytes)
          channel->put_first(seq, first);
        if (seq % 2 == 0) channel->put_first(seq, bytes);
        channel->put(seq, bytes);
      } else if (is_in_place) {
        receive_placed(transport, *channel, seq, 6);
      } else {
        channel->expect(seq, Lies::in_slot);
        receive(transport, *channel, seq, bytes, 6);
      }
    }
    meet(transport);
  });
}

TEST_CASE("a short message may be placed at one end only", "[conformance]") {
  constexpr std::size_t capacity = 6000;
  for (const bool is_sender_placed : {false, true})
    on_ranks(2, [=](Transport& transport) {
      if (!places_messages(transport)) return meet(transport);
      const bool is_placed = (transport.rank() == 0) == is_sender_placed;
      const auto channel = open_end(transport, is_placed, capacity, 2);
      std::vector<std::byte> memory(capacity);
      if (channel && is_placed) channel->place(std::vector<Blocks>{{memory.data(), {0}, {}, {}, capacity}});
      for (std::uint64_t seq = 0; seq < 100 && channel; ++seq) {
        if (transport.rank() == 0 && is_placed) {
          wait_for(transport, "the turn", [&] { return channel->send_slot(seq); });
          fill(memory.data(), capacity, 7, seq);
          channel->put_placed(seq);
        } else if (transport.rank() == 0) {
          send(transport, *channel, seq, capacity, 7);
        } else if (is_placed) {
          channel->expect(seq, Lies::in_place);
          wait_for(transport, "a message", [&] { return channel->arrived(seq); });
          claim_filled(memory.data(), capacity, 7, seq);
          channel->release(seq);
        } else {
          receive(transport, *channel, seq, capacity, 7);
        }
      }
      meet(transport);
    });
}

TEST_CASE("placed messages may lie elsewhere each time, and where others lay before", "[conformance]") {
  constexpr std::size_t capacity = 30000;
  for (const std::size_t places : {2, 3, 7})
    on_ranks(2, [=](Transport& transport) {
      if (!places_messages(transport)) return meet(transport);
      const auto channel = open_end(transport, true, capacity);
      std::vector<std::byte> memory(places * capacity);
      for (std::uint64_t seq = 0; seq < 60 && channel; ++seq) {
        std::byte* const place = memory.data() + seq % places * capacity;
        if (transport.rank() == 0) {
          wait_for(transport, "the turn", [&] { return channel->send_slot(seq); });
          fill(place, capacity, 8, seq);
        }
        channel->place(std::vector<Blocks>{{place, {0}, {100}, {300}, 300}});
        if (transport.rank() == 0) {
          channel->put_placed(seq);
          continue;
        }
        channel->expect(seq, Lies::in_place);
        wait_for(transport, "a message", [&] { return channel->arrived(seq); });
        claim_filled(place, capacity, 8, seq);
        channel->release(seq);
      }
      meet(transport);
    });
}

TEST_CASE("a placed message that is given up is not written any more", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    if (!places_messages(transport)) return meet(transport);
    const auto channel = open_end(transport, transport.rank() == 1);
    if (transport.rank() == 1) {
      std::vector<std::byte> memory(memory_bytes, untouched);
      channel->place(blocks_in(memory.data(), 2));
      channel->expect(0, Lies::in_place);
      wait_for(transport, "the memory", [&] { return channel->give_up(0); });
      claim(std::ranges::count(memory, untouched) == static_cast<std::ptrdiff_t>(memory_bytes), "nothing was written");
    }
    meet(transport);
    meet(transport);
  });
}
