// What the libfabric transport does beyond the conformance cases: its limits, lowered so that tests reach them, ranks
// that end or do not come, and very many channels.
#include <catch2/catch.hpp>
#include <thread>

#include "tests/transports/letters.hpp"
#include "tests/transports/ofi_processes.hpp"
#include "transports/control/socket.hpp"

using namespace kplan::tests;
using kplan::transport::control::listen_at;
using kplan::transport::control::port_of;
using namespace std::chrono_literals;

namespace {

void claim_says(const std::string& text, const std::string& words) {
  claim(text.find(words) != std::string::npos, "`" + text + "` says `" + words + "`");
}

void wait_until_dead(Transport& transport, int rank) {
  const Clock::time_point deadline = Clock::now() + 20s;
  while (!transport.is_dead(rank)) {
    claim(Clock::now() < deadline, "the end of a rank is noticed");
    transport.progress();
    std::this_thread::sleep_for(1ms);
  }
  claim(transport.dead() == rank, "it is the one that is dead");
}

}  // namespace

TEST_CASE("messages of more bytes than one operation carries are whole") {
  for (const std::size_t bytes :
       {std::size_t{99}, std::size_t{100}, std::size_t{101}, std::size_t{200}, std::size_t{9999}}) {
    on_ofi_ranks(2, {.piece_bytes = 100}, [=](Transport& transport) {
      const auto channels = open_ring(transport, bytes, 2);
      std::vector<std::byte> region(bytes);
      for (std::uint64_t seq = 0; seq < 30; ++seq) {
        const std::size_t length = seq % 3 == 1 ? bytes * 2 / 3 : bytes;
        if (seq % 3 == 2) {
          (void)wait_for(transport, "a slot", [&] { return channels[0]->send_slot(seq); });
          fill(region.data(), bytes, 1, seq);
          channels[0]->put_in_place(seq, region.data(), bytes);
        } else {
          send(transport, *channels[0], seq, length, 1);
        }
        receive(transport, *channels[1], seq, length, 1);
        wait_for(transport, "the message to be sent", [&] { return channels[0]->is_sent(seq); });
      }
    });
  }
}

TEST_CASE("letters of more bytes than one operation carries are whole") {
  on_ofi_ranks(2, {.piece_bytes = 5000}, [](Transport& transport) {
    Correspondent own(transport);
    for (unsigned seed = 0; seed < 20; ++seed) {
      own.begin(random_mail(2, seed, 60000, 4));
      own.finish();
    }
  });
}

TEST_CASE("exchanges count on beyond 31, 32 and 64 bits") {
  for (const std::uint64_t first :
       {(std::uint64_t{1} << 31) - 5, (std::uint64_t{1} << 32) - 6, ~std::uint64_t{0} - 4}) {
    on_ofi_ranks(3, {.first_exchange = first}, [](Transport& transport) {
      Correspondent own(transport);
      for (unsigned seed = 0; seed < 20; ++seed) {
        own.begin(random_mail(3, seed, 100, seed % 5 == 4 ? 1 : 3), seed % 5 == 4 ? Sources::known : Sources::unknown);
        own.finish();
      }
    });
  }
}

TEST_CASE("ten thousand channels between two ranks keep their messages apart") {
  on_ranks(2, [](Transport& transport) {
    std::vector<ChannelSpec> specs;
    for (std::uint32_t id = 0; id < 10000; ++id)
      specs.push_back({1 - transport.rank(), id, 100, 2, id % 2 == 0 ? Direction::send : Direction::receive});
    if (transport.rank() == 1) {
      for (ChannelSpec& spec : specs)
        spec.direction = spec.direction == Direction::send ? Direction::receive : Direction::send;
    }
    const auto channels = transport.open(specs, soon());
    for (std::uint64_t seq = 0; seq < 4; ++seq) {
      for (std::size_t i = 0; i < specs.size(); ++i) {
        if (specs[i].direction == Direction::send) send(transport, *channels[i], seq, 100, specs[i].id);
      }
      for (std::size_t i = specs.size(); i-- > 0;) {
        if (specs[i].direction == Direction::receive) receive(transport, *channels[i], seq, 100, specs[i].id);
      }
    }
  });
}

TEST_CASE("thousands of messages that follow their notes come whole from two ranks to one that is late") {
  on_ranks(3, [](Transport& transport) {
    constexpr std::uint32_t each = 700;
    constexpr std::size_t bytes = 5000;
    std::vector<ChannelSpec> specs;
    for (int sender : {1, 2})
      for (std::uint32_t id = 0; id < each && (transport.rank() == 0 || transport.rank() == sender); ++id) {
        if (transport.rank() == 0) specs.push_back({sender, id, bytes, 2, Direction::receive});
        else specs.push_back({0, id, bytes, 2, Direction::send});
      }
    const auto channels = transport.open(specs, soon());
    if (transport.rank() == 0) std::this_thread::sleep_for(300ms);
    for (std::uint64_t seq = 0; seq < 4; ++seq)
      for (std::size_t i = specs.size(); i-- > 0;) {
        if (transport.rank() == 0) receive(transport, *channels[i], seq, bytes, specs[i].id);
        else send(transport, *channels[i], seq, bytes, specs[i].id);
      }
    for (std::size_t i = 0; transport.rank() != 0 && i < specs.size(); ++i)
      wait_for(transport, "the messages to be sent", [&] { return channels[i]->is_sent(3); });
  });
}

TEST_CASE("channels that are closed leave no memory and no numbers behind") {
  on_ranks(2, [](Transport& transport) {
    for (unsigned round = 0; round < 300; ++round) {
      const auto channels = open_ring(transport, 1 << 20, 2);
      send(transport, *channels[0], 0, 1000, round);
      if (round % 2 == 0) receive(transport, *channels[1], 0, 1000, round);
    }
  });
}

TEST_CASE("a message of more than 2 GiB is whole", "[.large]") {
  on_ranks(2, [](Transport& transport) {
    const std::size_t bytes = (std::size_t{2} << 30) + 12345;
    const auto channel = open_one(transport, bytes, 1);
    if (transport.rank() == 0) {
      send(transport, *channel, 0, bytes, 5);
      wait_for(transport, "the message to be sent", [&] { return channel->is_sent(0); });
    } else {
      receive(transport, *channel, 0, bytes, 5);
    }
  });
}

TEST_CASE("what a rank has sent before it ends can still be taken, though the receiver is late") {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{100000}, std::size_t{20} << 20}) {
    on_ranks(2, [=](Transport& transport) {
      const auto channel = open_one(transport, bytes, 2);
      if (transport.rank() == 0) {
        send(transport, *channel, 0, bytes, 3);
        send(transport, *channel, 1, bytes, 3);
        return;
      }
      std::this_thread::sleep_for(300ms);
      receive(transport, *channel, 0, bytes, 3);
      receive(transport, *channel, 1, bytes, 3);
    });
  }
}

TEST_CASE("an allgather that runs out of time names the ranks that have not come") {
  on_ranks(3, [](Transport& transport) {
    if (transport.rank() == 1) return std::this_thread::sleep_for(1s);
    const auto deadline = Clock::now() + (transport.rank() == 0 ? 300ms : 60000ms);
    const std::string text = refusal([&] { (void)transport.allgather("here", deadline); });
    claim_says(text, "rank 0 waited");
    claim_says(text, "rank 1 of 3 to come to it");
    claim_says(text, "[KP-T001]");
    claim_says(refusal([&] { (void)transport.allgather("again", soon()); }), "[KP-T008]");
  });
}

TEST_CASE("a rank whose transport is destroyed is dead, and collective calls that need it fail at once") {
  for (int leaver = 0; leaver < 3; ++leaver) {
    on_ranks(3, [=](Transport& transport) {
      meet(transport);
      claim(!transport.dead() && !transport.is_dead(leaver), "nobody is dead");
      if (transport.rank() == leaver) return;
      wait_until_dead(transport, leaver);
      const Clock::time_point begin = Clock::now();
      const std::string text = refusal([&] { meet(transport); });
      claim(Clock::now() - begin < 5s, "it fails at once");
      claim_says(text, "waits in a collective call for rank " + std::to_string(leaver) + ", which has ended");
      claim_says(text, "[KP-T002]");
    });
  }
}

TEST_CASE("ofi_world can be made again after it was destroyed") {
  const bool is_rendezvous = std::getenv("KPLAN_RENDEZVOUS") != nullptr;
  for (int i = 0; i < 2; ++i) {
    if (is_rendezvous) {  // the one given is that of the processes' own control plane
      const std::string port = gather(std::to_string(port_of(listen_at({"127.0.0.1", 0}))))[0];
      setenv("KPLAN_RENDEZVOUS", ("127.0.0.1:" + port).c_str(), 1);
    }
    const auto transport = kplan::transport::ofi_world();
    claim(transport->name() == "ofi" && transport->size() == all_processes().size(), "it is the world");
    claim(transport->allgather("x", soon()).size() == static_cast<std::size_t>(transport->size()), "it gathers");
  }
}
