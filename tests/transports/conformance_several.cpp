// Sending ends with several receivers, where a transport has them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "tests/transports/ranks.hpp"

using namespace kplan::tests;

namespace {

bool reaches_all(const Transport& transport) {
  for (int peer = 0; peer < transport.size(); ++peer)
    if (peer != transport.rank() && transport.most_receivers(peer) < transport.size() - 1) return false;
  return true;
}

/// The end of each rank that sends to all others, by rank; the own one sends.
std::vector<ChannelSpec> to_all(const Transport& transport, std::size_t bytes, int slots) {
  std::vector<ChannelSpec> specs;
  ChannelSpec out{-1, 4, bytes, slots, Direction::send, false};
  for (int peer = 0; peer < transport.size(); ++peer) {
    specs.push_back({peer, 4, bytes, slots, Direction::receive, false});
    if (peer == transport.rank()) continue;
    if (out.peer < 0) out.peer = peer;
    else out.other_receivers.push_back(peer);
  }
  specs[static_cast<std::size_t>(transport.rank())] = out;
  return specs;
}

}  // namespace

TEST_CASE("a message for several receivers comes to each, whoever is slow", "[conformance]") {
  for (const int ranks : {3, 5}) {
    for (const int slots : {1, 2, 7}) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{20000}}) {
        on_ranks(ranks, [=](Transport& transport) {
          if (!reaches_all(transport)) return;
          const auto ends = transport.open(to_all(transport, bytes, slots), soon());
          std::minstd_rand random(static_cast<unsigned>(transport.rank()) + 1);
          for (std::uint64_t seq = 0; seq < 60; ++seq) {
            if (seq / 10 % 5 == static_cast<std::uint64_t>(transport.rank()))
              std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
            for (int peer = 0; peer < ranks; ++peer) {
              const auto from = static_cast<unsigned>(peer);
              Channel& end = *ends[static_cast<std::size_t>(peer)];
              if (peer == transport.rank()) send(transport, end, seq, bytes, from);
              else receive(transport, end, seq, bytes, from);
            }
          }
          meet(transport);
        });
      }
    }
  }
}

TEST_CASE("a slot that several receive from is free when the last of them has released it", "[conformance]") {
  on_ranks(3, [](Transport& transport) {
    if (!reaches_all(transport)) return;
    constexpr int slots = 2;
    std::vector<ChannelSpec> specs = to_all(transport, 100, slots);
    specs = {specs[0]};
    const auto ends = transport.open(specs, soon());
    Channel& end = *ends[0];
    for (const int last : {1, 2}) {
      const std::uint64_t first = last == 1 ? 0 : slots;
      for (std::uint64_t seq = first; seq < first + slots; ++seq) {
        if (transport.rank() == 0) send(transport, end, seq, 100, 3);
        else if (transport.rank() != last) receive(transport, end, seq, 100, 3);
      }
      meet(transport);
      if (transport.rank() == 0) claim(end.send_slot(first + slots) == nullptr, "a receiver still has the slot");
      meet(transport);
      if (transport.rank() == last)
        for (std::uint64_t seq = first; seq < first + slots; ++seq) receive(transport, end, seq, 100, 3);
      meet(transport);
      if (transport.rank() == 0) claim(end.send_slot(first + slots) != nullptr, "all have released the slot");
    }
  });
}

TEST_CASE("a message for several receivers is not lent, and a region in place may be changed at once",
          "[conformance]") {
  on_ranks(3, [](Transport& transport) {
    if (!reaches_all(transport)) return;
    const auto ends = transport.open(to_all(transport, 5000, 2), soon());
    const auto memory = transport.allocate(5000);
    Channel& own = *ends[static_cast<std::size_t>(transport.rank())];
    const auto own_number = static_cast<unsigned>(transport.rank());
    const std::byte* const region = memory.get();
    fill(memory.get(), 5000, own_number, 0);
    claim(own.send_slot(0) != nullptr && !own.lend(0, {&region, 1}), "it is not lent");
    own.put_in_place(0, region, 5000);
    claim(own.is_sent(0), "the region is free");
    fill(memory.get(), 5000, 77, 7);
    for (int peer = 0; peer < 3; ++peer)
      if (peer != transport.rank())
        receive(transport, *ends[static_cast<std::size_t>(peer)], 0, 5000, static_cast<unsigned>(peer));
    meet(transport);
  });
}

TEST_CASE("ends with several receivers are refused where they cannot be, on all ranks", "[conformance]") {
  on_ranks(3, [](Transport& transport) {
    std::vector<ChannelSpec> specs = to_all(transport, 8, 2);
    std::string words = "for several peers; only sending ends that are not placed may be";
    if (reaches_all(transport)) {
      specs = {specs[0]};
      if (transport.rank() == 0) specs[0].other_receivers = {1};
      words = "opens the sending end twice";
    }
    const std::string told = refusal([&] { (void)transport.open(specs, soon()); });
    claim(told.find(words) != std::string::npos, told);
  });
}
