// Programs whose transports and MPI begin and end in every order; each must end by itself with status 0. Named by the
// argument: `world` lets kplan initialise and finalise; `finalize_first` finalises under open channels with receives
// started and messages that nobody took, and under exchanges in flight; `run_late` runs plans after that; `leave` ends
// ranks at different times; `again` makes and drops transports whose channels may be left with messages, and must lose
// no communicator. `fail` has an error on all ranks but the last, which does not end: they say whether they were told
// in time, and the launcher ends it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "kplan/kplan.hpp"
#include "kplan/mpi.hpp"
#include "tests/transports/letters.hpp"
#include "transports/mpi/transport.hpp"

using namespace kplan::tests;
using kplan::transport::Use;

namespace {

int made_communicators = 0, freed_communicators = 0;

}  // namespace

// MPI's profiling interface: these take the place of its own.
extern "C" int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  ++made_communicators;
  return PMPI_Comm_dup(comm, made);
}

extern "C" int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  ++made_communicators;
  return PMPI_Comm_split_type(comm, type, key, info, made);
}

extern "C" int MPI_Comm_free(MPI_Comm* comm) {
  ++freed_communicators;
  return PMPI_Comm_free(comm);
}

namespace {

bool is_finalized() {
  int is_so = 0;
  MPI_Finalized(&is_so);
  return is_so != 0;
}

/// Has what exchanges of set-up on one node share, so that others go over MPI itself.
std::unique_ptr<SparseExchange> keep_from_node(Transport& transport) {
  return transport.open_exchange(soon(), Use::set_up);
}

/// A small and a large letter from each rank to the next, which nobody takes.
std::unique_ptr<Correspondent> begin_in_vain(Transport& transport, Sources sources, Use use = Use::set_up) {
  auto own = std::make_unique<Correspondent>(transport, transport.open_exchange(soon(), use));
  Mail mail{1, {}};
  for (int from = 0; from < transport.size(); ++from) {
    mail.letters.push_back({from, (from + 1) % transport.size(), 10});
    if (sources == Sources::unknown) mail.letters.push_back({from, (from + 1) % transport.size(), 1 << 20});
  }
  own->begin(mail, sources);
  return own;
}

void world() {
  {
    const auto transport = kplan::transport::mpi_world();
    const auto second = kplan::transport::mpi_world();
    if (transport->size() > 1) {
      const auto channels = open_ring(*transport, 100, 2);
      send(*transport, *channels[0], 0, 100, 1);
      receive(*transport, *channels[1], 0, 100, 1);
    }
    meet(*second);
    claim(!is_finalized(), "MPI runs while a transport lives");
  }
  claim(is_finalized(), "MPI ended with the last transport");
  bool is_refused = false;
  try {
    (void)kplan::transport::mpi_world();
  } catch (const kplan::TransportError&) {
    is_refused = true;
  }
  claim(is_refused, "MPI cannot start again");
}

void finalize_first() {
  MPI_Init(nullptr, nullptr);
  auto transport = kplan::transport::mpi(MPI_COMM_WORLD);
  std::vector<std::vector<std::unique_ptr<Channel>>> channels;
  if (transport->size() > 1) {
    channels.push_back(open_ring(*transport, 100, 2));
    channels.push_back(open_ring(*transport, 1 << 20, 4));  // too large to be sent before it is received
    send(*transport, *channels[0][0], 0, 100, 1);
    send(*transport, *channels[1][0], 0, 1 << 20, 1);
  }
  const auto kept = keep_from_node(*transport);
  const auto exchange = begin_in_vain(*transport, Sources::unknown);
  const auto other_exchange = begin_in_vain(*transport, Sources::known);
  if (transport->rank() % 2 != 0) (void)exchange->exchange().is_complete();
  MPI_Finalize();
  bool is_refused = false;
  try {
    meet(*transport);
  } catch (const kplan::TransportError&) {
    is_refused = true;
  }
  claim(is_refused, "a transport cannot be used after MPI");
  is_refused = false;
  try {
    (void)exchange->exchange().is_complete();
  } catch (const kplan::TransportError&) {
    is_refused = true;
  }
  claim(is_refused, "an exchange in flight cannot be used after MPI");
}

/// Executables of one engine, and what they run on.
struct Programs {
  explicit Programs(std::shared_ptr<Transport> transport) : engine(std::move(transport)) {
    add("short", "a[:, 0:3]@(rank + 1) % size <<= b[:, 5:8]@rank", 10);
    add("long", "a[:, 0:3]@(rank + 1) % size <<= b[:, 5:8]@rank", 4000);
    add("varying", "a[k, 0]@to[k] << sum << b[k, 0]@rank where k in range(n)", 10);
    add("sum", "a[k, 0]@r << sum << b[k, 0]@s where r in world, s in world, k in range(n)", 10);
    add("local", "a[:, 0:3]@rank <<= b[:, 5:8]@rank", 10);
  }
  void add(const std::string& name, const std::string& statement, std::int64_t rows) {
    kplan::PlanBuilder builder(name);
    builder.parameter("n", kplan::Scalar::i64);
    builder.buffer("a", kplan::Scalar::f64, {"n", "8"}).buffer("b", kplan::Scalar::f64, {"n", "8"});
    builder.index_buffer("to", kplan::Scalar::i64, {"n"}, kplan::Scope::private_, kplan::Time::varying);
    builder.communicate("all", statement);
    all.push_back(engine.compile(builder.build(), {{"n", rows}}));
    for (const char* buffer : {"a", "b"})
      all.back().bind(buffer, memory.emplace_back(static_cast<std::size_t>(8 * rows)));
    all.back().bind("to", ranks.emplace_back(static_cast<std::size_t>(rows), engine.size() - 1));
    all.back().run();
    all.back().run();
  }
  kplan::Engine engine;
  std::list<std::vector<double>> memory;
  std::list<std::vector<std::int64_t>> ranks;
  std::vector<kplan::Executable> all;
};

/// A run after MPI_Finalize is an error, through shared memory, too.
void run_late() {
  MPI_Init(nullptr, nullptr);
  const auto over_mpi_itself = [] {
    return kplan::transport::mpi_backend::make_transport(MPI_COMM_WORLD, {}, nullptr);
  };
  Programs near(kplan::transport::mpi(MPI_COMM_WORLD)), run(over_mpi_itself()), bound_anew(over_mpi_itself()),
      waited_for(over_mpi_itself()), tested(over_mpi_itself());
  // How many runs are refused.
  const auto refused = [](Programs& programs, const auto& f) {
    std::size_t count = 0;
    for (kplan::Executable& executable : programs.all) {
      try {
        f(executable);
      } catch (const kplan::TransportError& error) {
        claim(error.code() == "KP-T008", error.what());
        ++count;
      }
    }
    return count;
  };
  const auto start = [](kplan::Executable& e) { e.start(); };
  claim(refused(waited_for, start) + refused(tested, start) == 0, "MPI runs");
  MPI_Finalize();
  const std::size_t all = run.all.size();
  const auto run_once = [](kplan::Executable& e) { e.run(); };
  claim(refused(near, run_once) == all && refused(run, run_once) == all, "runs are refused");
  auto memory = bound_anew.memory;
  auto next = memory.begin();
  for (kplan::Executable& e : bound_anew.all)
    for (const char* buffer : {"a", "b"}) e.bind(buffer, *next++);
  claim(refused(bound_anew, start) == all, "what is bound anew is not run either");
  claim(refused(waited_for, [](kplan::Executable& e) { e.wait(); }) == all, "none is waited for");
  claim(refused(tested, [](kplan::Executable& e) { e.test(); }) == all, "none is tested");
}

void leave() {
  MPI_Init(nullptr, nullptr);
  std::unique_ptr<Correspondent> exchange, near_exchange;  // their letters outlive the transport
  {
    auto transport = kplan::transport::mpi(MPI_COMM_WORLD);
    if (transport->size() > 1) {
      const auto channels = open_ring(*transport, 1 << 20, 2);
      send(*transport, *channels[0], 0, 1 << 20, 1);
      if (transport->rank() % 2 == 0) receive(*transport, *channels[1], 0, 1 << 20, 1);
    }
    near_exchange = begin_in_vain(*transport, Sources::unknown, Use::runs);
    near_exchange->give_up();
    const auto kept = keep_from_node(*transport);
    exchange = begin_in_vain(*transport, Sources::unknown);
    if (transport->rank() % 2 != 0) (void)exchange->exchange().is_complete();
    exchange->give_up();
  }
  MPI_Finalize();
}

/// Over MPI itself: each rank sends the next `sent` messages, of which that takes `taken`.
void leave_messages(std::size_t capacity, std::size_t bytes, std::uint64_t sent, std::uint64_t taken,
                    bool receiver_ends_first) {
  const std::shared_ptr<Transport> transport =
      kplan::transport::mpi_backend::make_transport(MPI_COMM_WORLD, {}, nullptr);
  if (transport->size() == 1) return;
  auto channels = open_ring(*transport, capacity, 4, true);
  for (std::uint64_t seq = 0; seq < sent; ++seq) {
    send(*transport, *channels[0], seq, bytes, 1);
    if (seq < taken) receive(*transport, *channels[1], seq, bytes, 1);
  }
  if (receiver_ends_first) channels[1].reset();
  channels[0].reset();
  if (sent > taken) return;
  // The other has said that it ends, which is no message.
  meet(*transport);
  for (unsigned idle = 0; channels[1] && idle < 100; ++idle) {
    claim(channels[1]->arrived(taken) == nullptr, "nothing more was sent");
    transport->progress();
  }
}

/// Channels that are made and dropped, with a message left in each, leave nothing in a transport that lives on.
void make_and_drop_channels() {
  const auto transport = kplan::transport::mpi_backend::make_transport(MPI_COMM_WORLD, {}, nullptr);
  if (transport->size() == 1) return;
  constexpr std::size_t bytes = 20000;
  const auto round = [&] {
    const auto channels = open_ring(*transport, bytes, 4, true);
    send(*transport, *channels[0], 0, bytes, 1);
  };
  for (int k = 0; k < 20; ++k) round();
  const std::size_t before = allocated_bytes();
  for (int k = 0; k < 100; ++k) round();
  claim(allocated_bytes() < before + 50 * bytes, "closed channels are given back");
}

void again() {
  MPI_Init(nullptr, nullptr);
  make_and_drop_channels();
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 5; ++round)
    for (const auto& [capacity, bytes] : {std::pair(8, 8), {600, 600}, {6000, 6000}, {6000, 100}, {20000, 20000}})
      for (const bool receiver_ends_first : {false, true})
        for (std::uint64_t sent = 0; sent <= 6; ++sent)
          for (std::uint64_t taken = sent - std::min<std::uint64_t>(sent, 4); taken <= sent; ++taken)
            leave_messages(static_cast<std::size_t>(capacity), static_cast<std::size_t>(bytes), sent, taken,
                           receiver_ends_first);
  claim(made_communicators > 0 && freed_communicators == made_communicators,
        std::to_string(freed_communicators) + " of " + std::to_string(made_communicators) + " communicators are freed");
  claim(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60), "nobody waited for a second each time");
  MPI_Finalize();
}

void fail() {
  constexpr std::chrono::seconds in_time(20), never(60);
  const auto begin = std::chrono::steady_clock::now();
  try {
    const auto transport = kplan::transport::mpi_world();
    if (transport->rank() + 1 == transport->size()) std::this_thread::sleep_for(never);
    throw std::runtime_error("lost");
  } catch (const std::runtime_error&) {
    std::printf("told %s\n", std::chrono::steady_clock::now() - begin < in_time ? "in time" : "too late");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  try {
    if (std::strcmp(name, "world") == 0) {
      world();
    } else if (std::strcmp(name, "finalize_first") == 0) {
      finalize_first();
    } else if (std::strcmp(name, "run_late") == 0) {
      run_late();
    } else if (std::strcmp(name, "leave") == 0) {
      leave();
    } else if (std::strcmp(name, "again") == 0) {
      again();
    } else if (std::strcmp(name, "fail") == 0) {
      fail();
    } else {
      std::fprintf(stderr, "usage: kplan-mpi-lifetime world|finalize_first|run_late|leave|again|fail\n");
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
  return 0;
}
