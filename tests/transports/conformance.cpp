// What every transport does with the messages of a channel. Run on each backend by its own on_ranks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "tests/transports/ranks.hpp"

using namespace kplan::tests;

TEST_CASE("a transport can end as soon as it was made", "[conformance]") {
  for (const int ranks : rank_counts)
    for (int round = 0; round < 3; ++round) on_ranks(ranks, [](Transport&) {});
}

TEST_CASE("messages of a channel arrive in order and unchanged", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    for (const int slots : {1, 2, 8}) {
      on_ranks(ranks, [=](Transport& transport) {
        const auto channels = open_ring(transport, 24, slots);
        for (std::uint64_t seq = 0; seq < 3000; ++seq) {
          send(transport, *channels[0], seq, 24, 1);
          receive(transport, *channels[1], seq, 24, 1);
        }
      });
    }
  }
}

TEST_CASE("messages of every size from one byte to megabytes are whole, in aligned memory", "[conformance]") {
  const std::size_t sizes[] = {1, 3, 8, 24, 25, 63, 64, 65, 4097, 70001, 1 << 20, (3 << 20) + 5};
  on_ranks(2, [&](Transport& transport) {
    for (const std::size_t bytes : sizes) {
      const auto channels = open_ring(transport, bytes, 2);
      for (std::uint64_t seq = 0; seq < 5; ++seq) {
        const std::uintptr_t alignment = bytes <= 24 ? 16 : 64;
        const auto is_aligned = [&](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; };
        claim(is_aligned(wait_for(transport, "a slot", [&] { return channels[0]->send_slot(seq); })),
              "the slot is aligned");
        send(transport, *channels[0], seq, bytes, 2);
        claim(is_aligned(wait_for(transport, "a message", [&] { return channels[1]->arrived(seq); })),
              "the message is aligned");
        receive(transport, *channels[1], seq, bytes, 2);
      }
    }
  });
}

TEST_CASE("a message may be shorter than the capacity, and empty", "[conformance]") {
  for (const std::size_t capacity : {std::size_t{100}, std::size_t{300000}}) {
    on_ranks(2, [=](Transport& transport) {
      const auto channels = open_ring(transport, capacity, 2);
      for (std::uint64_t seq = 0; seq < 60; ++seq) {
        const std::size_t bytes = capacity * (seq % 7) / 6;
        send(transport, *channels[0], seq, bytes, 3);
        receive(transport, *channels[1], seq, bytes, 3);
      }
    });
  }
}

TEST_CASE("a sender gets all slots ahead of its receiver, and not without bound", "[conformance]") {
  for (const int slots : {1, 2, 8}) {
    on_ranks(2, [=](Transport& transport) {
      const auto channel = open_one(transport, 40, slots);
      std::uint64_t sent = 0;
      if (transport.rank() == 0) {
        for (unsigned idle = 0; idle < 2000;) {
          if (channel->send_slot(sent) != nullptr) {
            send(transport, *channel, sent++, 40, 4);
            idle = 0;
          } else {
            transport.progress();
            if (++idle % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }
        claim(sent >= static_cast<std::uint64_t>(slots), "every slot can be used");
        claim(sent <= static_cast<std::uint64_t>(most_ahead(slots)), "the sender is held");
      }
      const std::string told = transport.allgather(std::to_string(sent), soon()).at(0);
      if (transport.rank() == 1) {
        for (std::uint64_t seq = 0; seq < std::stoull(told); ++seq) receive(transport, *channel, seq, 40, 4);
      }
      meet(transport);
    });
  }
}

TEST_CASE("messages wait in their slots until they are released", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    const auto channels = open_ring(transport, 1000, 4);
    for (std::uint64_t first = 0; first < 40; first += 4) {
      for (std::uint64_t seq = first; seq < first + 4; ++seq) send(transport, *channels[0], seq, 1000, 5);
      for (std::uint64_t seq = first + 4; seq-- > first;)
        (void)wait_for(transport, "a message", [&] { return channels[1]->arrived(seq); });
      claim(channels[1]->arrived(first + 4) == nullptr, "a message that was not sent has not come");
      for (std::uint64_t seq = first; seq < first + 4; ++seq) receive(transport, *channels[1], seq, 1000, 5);
    }
  });
}

TEST_CASE("no message is lost when either end is slow, or both in turn", "[conformance]") {
  const auto is_slow = [](int who, int rank, std::uint64_t seq) {
    return who == 2 ? static_cast<int>(seq / 8 % 2) == rank : who == rank;
  };
  for (const int who : {0, 1, 2}) {
    for (const int slots : {1, 2, 8}) {
      on_ranks(2, [=](Transport& transport) {
        const auto channel = open_one(transport, 5000, slots);
        std::minstd_rand random(7);
        for (std::uint64_t seq = 0; seq < 64; ++seq) {
          if (is_slow(who, transport.rank(), seq))
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
          if (transport.rank() == 0) {
            send(transport, *channel, seq, 5000, 6);
          } else {
            receive(transport, *channel, seq, 5000, 6);
          }
        }
        meet(transport);
      });
    }
  }
}

TEST_CASE("channels with room for much carry many messages, however far the sender is ahead", "[conformance]") {
  constexpr std::size_t bytes = 60000;
  for (const int slow : {0, 1}) {
    for (const int slots : {7, 8}) {
      on_ranks(2, [=](Transport& transport) {
        const auto channel = open_one(transport, bytes, slots);
        std::minstd_rand random(7);
        for (std::uint64_t seq = 0; seq < 80; ++seq) {
          if (transport.rank() == slow) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
          if (transport.rank() == 0) send(transport, *channel, seq, bytes, 8);
          else receive(transport, *channel, seq, bytes, 8);
        }
        meet(transport);
      });
    }
  }
}

TEST_CASE("a region put in place arrives as it was, and may be changed once it is sent", "[conformance]") {
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{200000}}) {
    for (const int slots : {1, 2, 8}) {
      on_ranks(2, [=](Transport& transport) {
        const auto channel = open_one(transport, bytes, slots);
        std::vector<std::byte> region(bytes);
        for (std::uint64_t seq = 0; seq < 100; ++seq) {
          if (transport.rank() == 0) {
            (void)wait_for(transport, "a slot", [&] { return channel->send_slot(seq); });
            fill(region.data(), bytes, 7, seq);
            channel->put_in_place(seq, region.data(), bytes);
            wait_for(transport, "the region", [&] { return channel->is_sent(seq); });
            fill(region.data(), bytes, 0, 0);
          } else {
            receive(transport, *channel, seq, bytes, 7);
          }
        }
        meet(transport);
      });
    }
  }
}

TEST_CASE("short messages are put in place from one region again and again, and then from another", "[conformance]") {
  for (const std::size_t capacity : {std::size_t{100}, std::size_t{400}, std::size_t{1000}, std::size_t{5000}}) {
    on_ranks(2, [=](Transport& transport) {
      const auto channel = open_one(transport, capacity, 4);
      std::vector<std::vector<std::byte>> regions(2, std::vector<std::byte>(capacity));
      for (std::uint64_t seq = 0; seq < 100; ++seq) {
        const std::size_t bytes = seq % 11 == 10 ? capacity / 2 : capacity;
        if (transport.rank() == 1) {
          receive(transport, *channel, seq, bytes, 9);
          continue;
        }
        std::byte* const region = regions[seq / 3 % 2].data();
        (void)wait_for(transport, "a slot", [&] { return channel->send_slot(seq); });
        fill(region, bytes, 9, seq);
        channel->put_in_place(seq, region, bytes);
        wait_for(transport, "the region", [&] { return channel->is_sent(seq); });
      }
      meet(transport);
    });
  }
}

TEST_CASE("messages put from slots and in place, of changing regions and sizes, may be mixed", "[conformance]") {
  for (const int slots : {1, 2, 8}) {
    on_ranks(2, [=](Transport& transport) {
      const std::size_t capacity = 30000;
      const auto channel = open_one(transport, capacity, slots);
      std::vector<std::vector<std::byte>> regions(static_cast<std::size_t>(slots) + 3,
                                                  std::vector<std::byte>(capacity));
      const auto size_of = [=](std::uint64_t seq) { return seq % 5 == 4 ? seq * 10 : capacity; };
      for (std::uint64_t seq = 0; seq < 200; ++seq) {
        if (transport.rank() == 1) {
          receive(transport, *channel, seq, size_of(seq), 8);
        } else if (seq % 3 == 0) {
          send(transport, *channel, seq, size_of(seq), 8);
        } else {
          // A region comes round only after all slots did, so the message before it in the region has been sent.
          std::byte* const region = regions[seq % regions.size()].data();
          (void)wait_for(transport, "a slot", [&] { return channel->send_slot(seq); });
          if (seq >= regions.size())
            wait_for(transport, "the region", [&] { return channel->is_sent(seq - regions.size()); });
          fill(region, size_of(seq), 8, seq);
          channel->put_in_place(seq, region, size_of(seq));
        }
      }
      if (transport.rank() == 0) wait_for(transport, "all regions", [&] { return channel->is_sent(199); });
      meet(transport);
    });
  }
}

TEST_CASE("all ranks exchange large messages with all others at once", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      const std::size_t bytes = 1 << 20;
      std::vector<ChannelSpec> specs;
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == transport.rank()) continue;
        specs.push_back({peer, 0, bytes, 2, Direction::send});
        specs.push_back({peer, 0, bytes, 2, Direction::receive});
      }
      const auto channels = transport.open(specs, soon());
      for (std::uint64_t seq = 0; seq < 3; ++seq) {
        for (std::size_t i = 0; i < specs.size(); i += 2)
          send(transport, *channels[i], seq, bytes, static_cast<unsigned>(transport.rank()));
        for (std::size_t i = 1; i < specs.size(); i += 2)
          receive(transport, *channels[i], seq, bytes, static_cast<unsigned>(specs[i].peer));
      }
    });
  }
}

TEST_CASE("very many channels at once keep their messages apart", "[conformance]") {
  for (const int ranks : {2, 3}) {
    on_ranks(ranks, [=](Transport& transport) {
      const auto count = static_cast<std::uint32_t>(many_channels());
      std::vector<ChannelSpec> specs;
      for (std::uint32_t id = 0; id < count; ++id) {
        const int step = ranks == 2 ? 1 : 1 + static_cast<int>(id % 2);
        specs.push_back({(transport.rank() + step) % ranks, id, 48, 2, Direction::send});
        specs.push_back({(transport.rank() + ranks - step) % ranks, id, 48, 2, Direction::receive});
      }
      const auto channels = transport.open(specs, soon());
      for (std::uint64_t seq = 0; seq < 4; ++seq) {
        for (std::size_t i = 0; i < channels.size(); i += 2) send(transport, *channels[i], seq, 48, specs[i].id);
        for (std::size_t i = channels.size(); i > 0; i -= 2)
          receive(transport, *channels[i - 1], seq, 48, specs[i - 1].id);
      }
    });
  }
}

namespace {

/// Sends a message once there is a slot, and then lets itself and another go.
struct SentOnTheWay final : kplan::transport::InFlight {
  SentOnTheWay(Transport& its_transport, Channel& its_channel) : transport(its_transport), channel(its_channel) {
    transport.keep_moving(*this);
  }
  ~SentOnTheWay() { transport.let_go(*this); }
  void move_on() override {
    ++moves;
    if (is_sent || !channel.send_slot(0)) return;
    send(transport, channel, 0, 40, 3);
    is_sent = true;
    transport.let_go(*other);
    transport.let_go(*this);
  }
  Transport& transport;
  Channel& channel;
  SentOnTheWay* other = nullptr;
  int moves = 0;
  bool is_sent = false;
};

}  // namespace

TEST_CASE("what is kept moving is moved while its rank waits in a collective call, until it is let go",
          "[conformance]") {
  for (const bool opens : {false, true}) {
    on_ranks(3, [=](Transport& transport) {
      const auto channels = open_ring(transport, 40, 2);
      SentOnTheWay first(transport, *channels[0]), last(transport, *channels[0]);
      first.other = &last;
      last.other = &first;
      // Each rank but the first comes to the call when it has what the one before sends from there.
      if (transport.rank() > 0) {
        transport.let_go(first);
        transport.let_go(last);
        receive(transport, *channels[1], 0, 40, 3);
        transport.keep_moving(first);
        transport.keep_moving(last);
      }
      if (opens) (void)open_ring(transport, 8, 2);
      else (void)transport.allgather("", soon());
      if (transport.rank() == 0) receive(transport, *channels[1], 0, 40, 3);
      wait_for(transport, "it is sent", [&] { return first.is_sent || last.is_sent; });  // by the last rank here
      claim(first.is_sent != last.is_sent, "it is sent once");
      const int moves = first.moves + last.moves;
      transport.progress();
      claim(first.moves + last.moves == moves, "it was let go");
      meet(transport);
    });
  }
}
