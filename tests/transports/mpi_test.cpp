// What the MPI transport does beyond the conformance cases: its limits, lowered so that tests reach them, and its
// errors.
#include "kplan/mpi.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <optional>
#include <random>

#include "tests/transports/limited_ranks.hpp"
#include "tests/variable.hpp"
#include "transports/mpi/cut_blocks.hpp"
#include "transports/mpi/message_type.hpp"
#include "transports/mpi/tags.hpp"

using namespace kplan::tests;
using namespace kplan::transport::mpi_backend;
using kplan::transport::Blocks;
using namespace std::chrono_literals;

namespace {

bool fails_to_warm = false, fails_to_duplicate = false;
int cancelled = 0;  ///< requests

/// What allocate() says while the process is limited to so much of a resource.
std::string refusal_under(decltype(RLIMIT_FSIZE) resource, rlim_t most, Transport& transport, std::size_t bytes) {
  rlimit before{};
  getrlimit(resource, &before);
  const rlimit little{most, before.rlim_max};
  setrlimit(resource, &little);
  std::string text = refusal<kplan::Error>([&] { (void)transport.allocate(bytes); });
  setrlimit(resource, &before);
  return text;
}

}  // namespace

/// MPI's own, which can be told to fail.
extern "C" int MPI_Irecv(void* memory, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  if (fails_to_warm && tag == tag_of_warming) return MPI_ERR_OTHER;
  return PMPI_Irecv(memory, count, type, from, tag, comm, request);
}

extern "C" int MPI_Isend(const void* memory, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  if (fails_to_warm && tag == tag_of_warming) return MPI_ERR_OTHER;
  return PMPI_Isend(memory, count, type, to, tag, comm, request);
}

extern "C" int MPI_Cancel(MPI_Request* request) {
  ++cancelled;
  return PMPI_Cancel(request);
}

extern "C" int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* out) {
  return fails_to_duplicate ? MPI_ERR_OTHER : PMPI_Comm_dup(comm, out);
}

TEST_CASE("a type of any number of bytes has that size and extent") {
  for (const int max_count : {7, 100, 2147483647}) {
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{6}, std::size_t{7}, std::size_t{8},
                              std::size_t{14}, std::size_t{48}, std::size_t{49}, std::size_t{2147483647},
                              std::size_t{2147483648}, std::size_t{10000000019}}) {
      if (bytes > static_cast<std::size_t>(max_count) * static_cast<std::size_t>(max_count)) continue;
      const MessageType message(bytes, max_count);
      MPI_Count size = 0;
      MPI_Count lower = 0;
      MPI_Count extent = 0;
      MPI_Type_size_x(message.type(), &size);
      MPI_Type_get_extent_x(message.type(), &lower, &extent);
      CHECK(static_cast<std::size_t>(size * message.count()) == bytes);
      CHECK(static_cast<std::size_t>(extent * message.count()) == bytes);
      CHECK(lower == 0);
    }
  }
  CHECK(code_of([] { MessageType(56, 7); }) == "KP-T007");
}

TEST_CASE("blocks that are cut are the bytes between the limits, in order") {
  std::minstd_rand random(5);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random()) % n; };
  const auto offsets_of = [](std::span<const Blocks> blocks) {
    std::vector<std::int64_t> out;
    for (const Blocks& b : blocks)
      for (const std::int64_t offset : b.offsets_bytes) {
        std::vector<std::int64_t> at{offset};
        for (std::size_t d = 0; d < b.counts.size(); ++d) {
          std::vector<std::int64_t> more;
          for (const std::int64_t o : at)
            for (std::int64_t k = 0; k < b.counts[d]; ++k) more.push_back(o + k * b.strides_bytes[d]);
          at = std::move(more);
        }
        for (const std::int64_t o : at)
          for (std::int64_t k = 0; k < b.block_bytes; ++k) out.push_back(o + k);
      }
    return out;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<Blocks> blocks(static_cast<std::size_t>(1 + below(3)));
    for (Blocks& b : blocks) {
      b.block_bytes = 1 + below(9);
      for (std::int64_t n = 1 + below(5); n > 0; --n) b.offsets_bytes.push_back(below(1000));
      for (std::int64_t n = below(4); n > 0; --n) {
        b.counts.push_back(1 + below(5));
        b.strides_bytes.push_back(1 + below(100));
      }
    }
    const std::vector<std::int64_t> all = offsets_of(blocks);
    const auto bytes = static_cast<std::int64_t>(all.size());
    const std::int64_t first = below(bytes), last = first + 1 + below(bytes - first);
    const std::vector<Blocks> some = cut(blocks, static_cast<std::size_t>(first), static_cast<std::size_t>(last));
    CHECK(offsets_of(some) == std::vector(all.begin() + first, all.begin() + last));
    CHECK(some.size() <= blocks.size() + 8);  // one more for each loop at either limit
  }
}

TEST_CASE("messages of more bytes than a count can say are whole") {
  for (const std::size_t bytes :
       {std::size_t{149}, std::size_t{150}, std::size_t{151}, std::size_t{300}, std::size_t{9999}}) {
    on_limited_ranks(2, {0, 150}, [=](Transport& transport) {
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

TEST_CASE("receives of channels that are not in use are withdrawn, and what comes by these is there all the same") {
  for (const int ranks : {2, 3})
    on_limited_ranks(ranks, {}, [](Transport& transport) {
      constexpr std::uint64_t rounds = 12, busy_messages = 700;
      const auto busy = open_ring(transport, 100, 4), idle = open_ring(transport, 100, 4),
                 late = open_ring(transport, 100, 3), ending = open_ring(transport, 100, 4, true),
                 large = open_ring(transport, 9000, 4);
      std::uint64_t seq = 0, late_seq = 0;
      for (std::uint64_t round = 0; round < rounds; ++round) {
        const int before = cancelled;
        // Some messages come before the receives are withdrawn, some after that, up to as many as there are slots.
        for (std::uint64_t k = 0; k < round % 3; ++k) send(transport, *late[0], late_seq + k, 100, 1);
        if (round % 4 == 1) send(transport, *ending[0], round / 4, 60, 1);
        for (std::uint64_t k = 0; k < busy_messages; ++k, ++seq) {
          send(transport, *busy[0], seq, 100, 1);
          receive(transport, *busy[1], seq, 100, 1);
        }
        claim(round == 0 || cancelled > before, "none were withdrawn");
        for (std::uint64_t k = 0; k < round % 3; ++k) receive(transport, *late[1], late_seq++, 100, 1);
        if (round % 4 == 1) receive(transport, *ending[1], round / 4, 60, 1);
        for (const auto* channels : {&idle, &large}) {
          send(transport, *(*channels)[0], round, 100, 1);
          receive(transport, *(*channels)[1], round, 100, 1);
        }
      }
    });
}

TEST_CASE("channels can be opened for ever though a communicator has few tags") {
  for (const int ranks : {2, 3}) {
    on_limited_ranks(ranks, {9, 0}, [](Transport& transport) {
      std::vector<std::vector<std::unique_ptr<Channel>>> alive;
      for (unsigned round = 0; round < 60; ++round) {
        alive.push_back(open_ring(transport, 16, 2));
        if (alive.size() > 12) alive.erase(alive.begin());  // some live longer than their communicator is in use
        for (unsigned i = 0; i < alive.size(); ++i) {
          const std::uint64_t seq = alive.size() < 13 ? alive.size() - 1 - i : 12 - i;
          send(transport, *alive[i][0], seq, 16, i + round);
          receive(transport, *alive[i][1], seq, 16, i + round);
        }
      }
    });
  }
}

TEST_CASE("more channels at once than there are tags are refused on every rank") {
  on_limited_ranks(2, {9, 0}, [](Transport& transport) {
    std::vector<ChannelSpec> specs;
    for (std::uint32_t id = 0; id < 9; ++id)
      specs.push_back({1 - transport.rank(), id, 8, 1, transport.rank() == 0 ? Direction::send : Direction::receive});
    claim(code_of([&] { (void)transport.open(specs, soon()); }) == "KP-T007", "nine are too many");
    specs.pop_back();
    claim(transport.open(specs, soon()).size() == 8, "eight can be opened");
  });
}

TEST_CASE("an allgather of more bytes than a count can say is refused on every rank") {
  for (const int ranks : rank_counts) {
    on_limited_ranks(ranks, {0, 100}, [=](Transport& transport) {
      const std::size_t share = 100 / static_cast<std::size_t>(ranks);
      claim(transport.allgather(std::string(share, 'x'), soon()).size() == static_cast<std::size_t>(ranks),
            "100 bytes fit");
      const std::string mine(transport.rank() == 0 ? 101 : 0, 'x');
      claim(code_of([&] { (void)transport.allgather(mine, soon()); }) == "KP-T007", "101 bytes are too many");
    });
  }
}

TEST_CASE("an allgather to which a rank does not come ends at its deadline, and the transport with it") {
  on_ranks(2, [](Transport& transport) {
    if (transport.rank() != 0) return;
    const auto gather = [&] { (void)transport.allgather("here", Clock::now() + 100ms); };
    claim(code_of(gather) == "KP-T001", "it ran out of time");
    claim(code_of(gather) == "KP-T008", "it cannot be used again");
  });
}

TEST_CASE("a transport that could not set up a connection is not used again") {
  on_limited_ranks(2, {}, [](Transport& transport) {
    fails_to_warm = true;
    claim(code_of([&] { (void)open_one(transport, 8, 1); }) == "KP-T005", "MPI fails");
    fails_to_warm = false;
    claim(code_of([&] { (void)transport.allgather("here", soon()); }) == "KP-T008", "it cannot be used again");
  });
}

TEST_CASE("a transport that could not duplicate its communicator is not used again") {
  const auto fails = [](Transport& transport, const auto& call) {
    fails_to_duplicate = true;
    claim(code_of(call) == "KP-T005", "MPI fails");
    fails_to_duplicate = false;
    claim(code_of([&] { (void)transport.allgather("here", soon()); }) == "KP-T008", "it cannot be used again");
  };
  on_limited_ranks(2, {first_channel_tag + exchange_tags::count - 1, 0}, [&](Transport& transport) {
    (void)transport.open_exchange(soon());  // takes all the tags that there are
    fails(transport, [&] { (void)transport.open_exchange(soon()); });
  });
  on_limited_ranks(2, {}, [&](Transport& transport) {
    fails(transport, [&] { (void)transport.open_collective({{}, 0, {0, 0}, {0, 0}}, soon()); });
  });
}

TEST_CASE("memory for which no file can be opened is refused with a way out") {
  on_ranks(2, [](Transport& transport) {
    if (!transport.lends_memory(1 - transport.rank())) return;
    const int next_file = dup(0);
    close(next_file);
    const std::string text = refusal_under(RLIMIT_NOFILE, static_cast<rlim_t>(next_file), transport, 1 << 20);
    claim(text.find("ulimit -n") != std::string::npos && text.find("[KP-T006]") != std::string::npos, text.c_str());
  });
}

TEST_CASE("memory that the system has not is refused before any of it is taken") {
  on_ranks(2, [](Transport& transport) {
    // Were the system asked for it, this limit would be in the way, and another reason given.
    std::signal(SIGXFSZ, SIG_IGN);
    const std::string text = refusal_under(RLIMIT_FSIZE, 1 << 20, transport, std::size_t{1} << 53);
    std::signal(SIGXFSZ, SIG_DFL);
    claim(text.find("Cannot allocate memory") != std::string::npos && text.find("[KP-T006]") != std::string::npos,
          text.c_str());
  });
}

TEST_CASE("memory beyond the limit on the size of files is refused, and does not end the process") {
  on_ranks(2, [](Transport& transport) {
    if (!transport.lends_memory(1 - transport.rank())) return;
    const std::string text = refusal_under(RLIMIT_FSIZE, 1 << 20, transport, 2 << 20);
    claim(text.find("File too large") != std::string::npos && text.find("[KP-T006]") != std::string::npos,
          text.c_str());
  });
}

TEST_CASE("a rank that does without shared memory exchanges with those that do not") {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::optional<Variable> off;
  if (rank == 0) off.emplace("KPLAN_NODE", "off");
  for (const int ranks : {2, 3})
    on_ranks(ranks, [=](Transport& transport) {
      std::vector<std::string> expected;
      for (int r = 0; r < ranks; ++r) expected.push_back("rank " + std::to_string(r));
      claim(transport.allgather(expected[static_cast<std::size_t>(rank)], soon()) == expected, "all are told alike");
      claim(!transport.lends_memory(rank == 0 ? 1 : 0), "none shares memory with rank 0");
    });
}

TEST_CASE("what MPI fails to close leaks, and all else is closed as the world shuts") {
  struct Holder final : RequestHolder {
    void close() override {
      if (fails) throw kplan::TransportError("KP-T005", "MPI_Cancel failed");
      is_closed = true;
    }
    void leak() override { is_leaked = true; }
    bool fails = false, is_closed = false, is_leaked = false;
  };
  std::array<Holder, 3> holders;
  World world(MPI_COMM_SELF, {}, nullptr);
  for (Holder& holder : holders) world.enter(&holder);
  holders[0].fails = true;
  world.shut();
  CHECK_FALSE(world.is_open());
  for (const Holder& holder : holders) {
    CHECK(holder.is_leaked == holder.fails);
    CHECK(holder.is_closed != holder.fails);
  }
}

TEST_CASE("communicators that are none, or join two groups, are refused") {
  CHECK(code_of([] { (void)kplan::transport::mpi(MPI_COMM_NULL); }) == "KP-E003");
  on_ranks(2, [](Transport& transport) {
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - transport.rank(), 5, &inter);
    claim(code_of([&] { (void)kplan::transport::mpi(inter); }) == "KP-E003", "it is refused");
    MPI_Comm_free(&inter);
  });
}

TEST_CASE("mpi_world leaves MPI alone when the program has initialised it") {
  for (int i = 0; i < 3; ++i) {
    const auto transport = kplan::transport::mpi_world();
    CHECK(transport->name() == "mpi");
    CHECK(transport->allgather("x", soon()).size() == static_cast<std::size_t>(transport->size()));
  }
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  CHECK(is_finalized == 0);
}
