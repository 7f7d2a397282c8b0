// How it works: non-blocking calls, polled until the deadline. Sparse exchanges in flight are moved on meanwhile, since
// a rank that this one waits for may be waiting for them. The buffers of a call that did not end are leaked, since MPI
// may still write them.
#include "transports/mpi/exchange.hpp"

#include <cstdint>
#include <numeric>

#include "transports/codes.hpp"
#include "transports/mpi/tags.hpp"
#include "transports/not_come.hpp"
#include "transports/pause.hpp"

namespace kplan::transport::mpi_backend {
namespace {

/// Whether all requests ended before the deadline.
bool wait_all(World& world, std::vector<MPI_Request>& requests, Clock::time_point deadline) {
  for (unsigned idle = 0;; ++idle) {
    int is_done = 0;
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &is_done, MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (is_done != 0) return true;
    if (Clock::now() >= deadline) return false;
    world.note_driven();
    world.drive();
    pause_thread(idle, true);
  }
}

[[noreturn]] void give_up(World& world, Clock::duration waited) {
  world.taint();
  throw TransportError(codes::not_come, "rank " + std::to_string(world.rank()) + " waited " + in_seconds(waited) +
                                            " s for all " + std::to_string(world.size()) +
                                            " ranks to come to a collective call, and mpi does not tell which have "
                                            "not; make the same collective calls in the "
                                            "same order on every rank, or raise KPLAN_TIMEOUT");
}

struct Gathering {
  std::int64_t own_bytes = 0;
  std::string mine;
  std::vector<std::int64_t> bytes;
  std::vector<int> counts;
  std::vector<int> offsets;
  std::string all;
  std::vector<MPI_Request> requests{MPI_REQUEST_NULL};
};

void start_sizes(World& world, Gathering& g) {
  g.own_bytes = static_cast<std::int64_t>(g.mine.size());
  g.bytes.resize(static_cast<std::size_t>(world.size()));
  check(MPI_Iallgather(&g.own_bytes, 1, MPI_INT64_T, g.bytes.data(), 1, MPI_INT64_T, world.comm(), g.requests.data()),
        "MPI_Iallgather");
}

/// False if there is nothing to gather.
bool start_bytes(World& world, Gathering& g) {
  std::int64_t total = 0;
  for (const std::int64_t bytes : g.bytes) {
    total += bytes;
    if (total > world.limits().max_count)
      throw TransportError(codes::too_large, "a collective call with more than " +
                                                 std::to_string(world.limits().max_count) +
                                                 " bytes of all ranks together; pass less");
  }
  for (const std::int64_t bytes : g.bytes) g.counts.push_back(static_cast<int>(bytes));
  g.offsets.resize(g.counts.size());
  std::exclusive_scan(g.counts.begin(), g.counts.end(), g.offsets.begin(), 0);
  g.all.resize(static_cast<std::size_t>(total));
  if (total == 0) return false;
  check(MPI_Iallgatherv(g.mine.data(), static_cast<int>(g.mine.size()), MPI_BYTE, g.all.data(), g.counts.data(),
                        g.offsets.data(), MPI_BYTE, world.comm(), g.requests.data()),
        "MPI_Iallgatherv");
  return true;
}

}  // namespace

std::vector<std::string> allgather(World& world, std::string_view mine, Clock::time_point deadline) {
  const Clock::time_point begin = Clock::now();
  auto g = std::make_unique<Gathering>();
  const auto wait = [&] {
    try {
      if (wait_all(world, g->requests, deadline)) return;
    } catch (...) {
      (void)g.release();
      world.taint();
      throw;
    }
    (void)g.release();
    give_up(world, Clock::now() - begin);
  };
  g->mine = mine;
  start_sizes(world, *g);
  wait();
  if (start_bytes(world, *g)) wait();

  std::vector<std::string> result;
  for (std::size_t rank = 0; rank < g->counts.size(); ++rank)
    result.emplace_back(g->all, static_cast<std::size_t>(g->offsets[rank]), static_cast<std::size_t>(g->counts[rank]));
  return result;
}

void warm(World& world, const std::vector<int>& receivers, const std::vector<int>& senders,
          Clock::time_point deadline) {
  const Clock::time_point begin = Clock::now();
  std::vector<MPI_Request> requests;  // without memory, so that those that never end may be dropped
  for (const int sender : senders) {
    requests.push_back(MPI_REQUEST_NULL);
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, sender, tag_of_warming, world.comm(), &requests.back()), "MPI_Irecv");
  }
  for (const int receiver : receivers) {
    requests.push_back(MPI_REQUEST_NULL);
    check(MPI_Isend(nullptr, 0, MPI_BYTE, receiver, tag_of_warming, world.comm(), &requests.back()), "MPI_Isend");
  }
  if (!wait_all(world, requests, deadline)) give_up(world, Clock::now() - begin);
}

}  // namespace kplan::transport::mpi_backend
