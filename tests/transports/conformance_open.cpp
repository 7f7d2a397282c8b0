// What every transport does when channels are opened and closed.
#include <catch2/catch.hpp>
#include <random>

#include "tests/transports/ranks.hpp"

using namespace kplan::tests;

namespace {

/// Opens `specs` of each rank, in rank order (none for further ranks), and expects every rank to refuse with these
/// words.
void expect_refusal(int ranks, const std::vector<std::vector<ChannelSpec>>& specs, const std::string& words) {
  on_ranks(ranks, [&](Transport& transport) {
    const auto own = static_cast<std::size_t>(transport.rank());
    std::string message = "nothing";
    try {
      (void)transport.open(own < specs.size() ? specs[own] : std::vector<ChannelSpec>{}, soon());
    } catch (const kplan::TransportError& error) {
      claim(error.code() == "KP-T003", "the code is KP-T003");
      message = error.what();
    }
    claim(message.find(words) != std::string::npos, "`" + message + "` says `" + words + "`");
  });
}

}  // namespace

TEST_CASE("opening no channel at all works on any number of ranks", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      claim(transport.size() == ranks && transport.rank() >= 0 && transport.rank() < ranks, "rank and size are right");
      claim(transport.open({}, soon()).empty(), "there is no channel");
      claim(!transport.dead() && !transport.is_dead(0), "nobody is dead");
      meet(transport);
    });
  }
}

TEST_CASE("channels can be opened, used and closed again and again", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [](Transport& transport) {
      for (unsigned round = 0; round < 200; ++round) {
        const auto channels = open_ring(transport, 100 + round, 1 + static_cast<int>(round % 3));
        for (std::uint64_t seq = 0; seq < 4; ++seq) {
          send(transport, *channels[0], seq, 100, round);
          receive(transport, *channels[1], seq, 100, round);
        }
      }
    });
  }
}

TEST_CASE("channels are paired by their ids whatever the order at either end", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    std::vector<ChannelSpec> specs;
    for (std::uint32_t i = 0; i < 20; ++i) {
      const std::uint32_t id = 1000 - 50 * (transport.rank() == 0 ? i : (i * 7) % 20);
      specs.push_back({1 - transport.rank(), id, 64, 2, transport.rank() == 0 ? Direction::send : Direction::receive});
    }
    const auto channels = transport.open(specs, soon());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (transport.rank() == 0) {
        send(transport, *channels[i], 0, 64, specs[i].id);
      } else {
        receive(transport, *channels[i], 0, 64, specs[i].id);
      }
    }
    meet(transport);
  });
}

TEST_CASE("several generations of channels between the same ranks live side by side", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    std::vector<std::vector<std::unique_ptr<Channel>>> generations;
    for (int i = 0; i < 10; ++i) generations.push_back(open_ring(transport, 32, 2));
    for (unsigned i = 0; i < 10; ++i) send(transport, *generations[i][0], 0, 32, i);
    for (unsigned i = 10; i-- > 0;) receive(transport, *generations[i][1], 0, 32, i);
    generations.erase(generations.begin(), generations.begin() + 5);
    for (unsigned i = 0; i < 5; ++i) send(transport, *generations[i][0], 1, 32, i);
    for (unsigned i = 5; i-- > 0;) receive(transport, *generations[i][1], 1, 32, i);
  });
}

TEST_CASE("messages that nobody took before a close do not reach a later channel", "[conformance]") {
  for (const std::size_t bytes : {std::size_t{32}, std::size_t{500000}}) {
    on_ranks(2, [=](Transport& transport) {
      for (unsigned round = 0; round < 10; ++round) {
        {
          const auto lost = open_ring(transport, bytes, 2);
          send(transport, *lost[0], 0, bytes, 99);
          send(transport, *lost[0], 1, bytes, 99);
          if (round % 2 == 0) meet(transport);
        }
        const auto channels = open_ring(transport, bytes, 2);
        for (std::uint64_t seq = 0; seq < 5; ++seq) {
          send(transport, *channels[0], seq, bytes, round);
          receive(transport, *channels[1], seq, bytes, round);
        }
      }
    });
  }
}

TEST_CASE("channels that come when others have gone hold nothing", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      for (unsigned round = 0; round < 60; ++round) {
        const int slots = 1 + static_cast<int>(round / 5 % 4);
        auto channels = open_ring(transport, 100, slots);
        claim(!channels[1]->arrived(0), "nothing was sent");
        meet(transport);
        for (std::uint64_t seq = 0; seq < static_cast<std::uint64_t>(slots); ++seq)
          send(transport, *channels[0], seq, 100, round);
        for (std::uint64_t seq = 0; seq < static_cast<std::uint64_t>(slots); ++seq)
          receive(transport, *channels[1], seq, 100, round);
        channels.clear();
        meet(transport);
      }
    });
  }
}

TEST_CASE("channels that come while others go carry their own messages", "[conformance]") {
  struct Generation {
    std::vector<std::unique_ptr<Channel>> ends;
    unsigned seed = 0;
    std::size_t bytes = 0;
    std::uint64_t sent = 0;
  };
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      std::mt19937 common(static_cast<unsigned>(ranks));
      std::mt19937 own(static_cast<unsigned>(transport.rank()) + 1);
      std::vector<Generation> open, closing;
      for (unsigned round = 0; round < 150; ++round) {
        constexpr std::size_t lengths[] = {8, 100, 800, 5000, 70000, 3000000};
        const std::size_t bytes = lengths[common() % (round % 30 == 0 ? 6 : 5)];
        const int slots = 1 + static_cast<int>(common() % (bytes > 5000 ? 3 : 40));
        open.push_back({open_ring(transport, bytes, slots), round, bytes, 0});
        for (unsigned k = 0; k < 4; ++k) {
          Generation& g = k == 0 ? open.back() : open[common() % open.size()];
          send(transport, *g.ends[0], g.sent, g.bytes, g.seed);
          receive(transport, *g.ends[1], g.sent++, g.bytes, g.seed);
        }
        // All close the same ones, each when it likes.
        for (std::size_t k = common() % (open.size() > 25 ? 20 : 3); k > 0 && !open.empty(); --k) {
          std::swap(open[common() % open.size()], open.back());
          closing.push_back(std::move(open.back()));
          open.pop_back();
        }
        for (std::size_t k = own() % 4; k > 0 && !closing.empty(); --k) closing.pop_back();
        if (round % 10 != 9) continue;
        open.clear();
        closing.clear();
        meet(transport);  // nobody has any
      }
    });
  }
}

TEST_CASE("every rank refuses ends that do not fit together", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    const ChannelSpec sends{1, 7, 64, 2, Direction::send};
    const ChannelSpec receives{0, 7, 64, 2, Direction::receive};
    ChannelSpec other = receives;
    other.capacity_bytes = 128;
    expect_refusal(
        ranks, {{sends}, {other}},
        "channel 7 from rank 0 to rank 1: the sending end has 64 bytes and 2 slots, the receiving end 128 bytes");
    other = receives;
    other.slots = 3;
    expect_refusal(ranks, {{sends}, {other}}, "the receiving end 64 bytes and 3 slots");
    other = receives;
    other.may_leave_messages = true;
    expect_refusal(ranks, {{sends}, {other}}, "messages may be left by the receiving end alone");
    other.is_placed = true;
    expect_refusal(ranks, {{sends}, {other}}, "placed and with messages that may be left");
    other = receives;
    other.id = 8;
    expect_refusal(ranks, {{sends}, {other}},
                   "rank 0 opens the sending end, and rank 1 does not open the receiving one");
    expect_refusal(ranks, {{}, {receives}}, "rank 1 opens the receiving end, and rank 0 does not open the sending one");
    expect_refusal(ranks, {{sends, sends}, {receives}}, "rank 0 opens the sending end twice");
    expect_refusal(ranks, {{sends}, {receives, receives}}, "rank 1 opens the receiving end twice");
  }
}

TEST_CASE("every rank refuses ends that cannot be", "[conformance]") {
  for (const int ranks : rank_counts) {
    expect_refusal(ranks, {{{ranks, 0, 64, 2, Direction::send}}}, "with peer " + std::to_string(ranks));
    expect_refusal(ranks, {{{-1, 0, 64, 2, Direction::receive}}}, "with peer -1; ranks are 0 to");
    expect_refusal(ranks, {{{0, 0, 64, 2, Direction::send}}}, "with itself as peer");
    if (ranks == 1) continue;
    expect_refusal(ranks, {{{1, 0, 0, 2, Direction::send}}, {{0, 0, 0, 2, Direction::receive}}},
                   "a capacity of 0 bytes");
    expect_refusal(ranks, {{{1, 0, 8, 0, Direction::send}}, {{0, 0, 8, 0, Direction::receive}}}, "with 0 slots");
  }
}

// So many that ranks do not tell all others of their ends.
constexpr int many_ranks = 34;

TEST_CASE("among many ranks each opens its channels with those at their other ends", "[conformance][many]") {
  on_ranks(many_ranks, [](Transport& transport) {
    const int ranks = transport.size(), rank = transport.rank();
    std::vector<ChannelSpec> specs;
    std::vector<unsigned> seeds;
    for (const int step : {1, 5, 12})
      for (std::uint32_t id = 0; id < 3; ++id) {
        const int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
        specs.push_back({to, 10 * static_cast<std::uint32_t>(step) + id, 40 + id, 2, Direction::send});
        seeds.push_back(static_cast<unsigned>(rank) + id);
        specs.push_back({from, 10 * static_cast<std::uint32_t>(step) + id, 40 + id, 2, Direction::receive});
        seeds.push_back(static_cast<unsigned>(from) + id);
      }
    for (int round = 0; round < 3; ++round) {
      const auto channels = transport.open(specs, soon());
      for (std::size_t k = 0; k < specs.size(); k += 2)
        send(transport, *channels[k], 0, specs[k].capacity_bytes, seeds[k]);
      for (std::size_t k = 1; k < specs.size(); k += 2)
        receive(transport, *channels[k], 0, specs[k].capacity_bytes, seeds[k]);
      meet(transport);
    }
  });
}

TEST_CASE("among many ranks all refuse what two of them find not to fit, the first of several", "[conformance][many]") {
  std::vector<std::vector<ChannelSpec>> specs(many_ranks);
  specs[20] = {{30, 7, 64, 2, Direction::send}};
  specs[30] = {{20, 7, 64, 3, Direction::receive}};
  expect_refusal(many_ranks, specs, "channel 7 from rank 20 to rank 30: the sending end has 64 bytes and 2 slots");
  specs[3] = {{5, 9, 64, 2, Direction::send}};
  expect_refusal(many_ranks, specs, "rank 3 opens the sending end, and rank 5 does not open the receiving one");
  specs[2] = {{many_ranks, 1, 64, 2, Direction::send}};
  expect_refusal(many_ranks, specs, "rank 2 opens the sending end with peer 34");
}
