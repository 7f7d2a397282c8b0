// Measures what a message of a channel costs, one way, against the plainest form of the same in the same run. Pairs of
// ranks (0 and 1, 2 and 3, ...) play ping-pong at once, so an oversubscribed run shows how well waiting ranks yield.
//   kplan-ping-pong 2                      threads: channel against a bare flag in shared memory
//   mpirun -n 2 kplan-ping-pong            processes: channel of mpi against MPI_Send and MPI_Recv
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kplan/mpi.hpp"

using namespace kplan::transport;

namespace {

constexpr std::size_t sizes[] = {8, 4096, 65536};

/// Microseconds one way, the best of some batches.
template <class Round>
double measure(Transport& transport, int rounds, Round round) {
  double best = 1e9;
  for (int batch = 0; batch < 5; ++batch) {
    (void)transport.allgather("", Clock::now() + std::chrono::seconds(60));
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < rounds; ++i) round();
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / rounds / 2);
  }
  return best;
}

/// One message each way over channels: packed and unpacked by memcpy.
double channels_time(Transport& transport, std::size_t bytes, int rounds) {
  const int peer = transport.rank() ^ 1;
  const ChannelSpec specs[] = {{peer, 0, bytes, 2, Direction::send}, {peer, 0, bytes, 2, Direction::receive}};
  const auto channels = transport.open(specs, Clock::now() + std::chrono::seconds(60));
  std::vector<std::byte> data(bytes);
  std::uint64_t seq = 0;
  const auto wait = [&](auto poll) {
    for (unsigned idle = 0;; ++idle) {
      if (auto* const p = poll()) return p;
      transport.progress();
      transport.pause(idle);
    }
  };
  const auto send = [&] {
    std::memcpy(wait([&] { return channels[0]->send_slot(seq); }), data.data(), bytes);
    channels[0]->put(seq, bytes);
  };
  const auto receive = [&] {
    std::memcpy(data.data(), wait([&] { return channels[1]->arrived(seq); }), bytes);
    channels[1]->release(seq);
  };
  return measure(transport, rounds, [&] {
    transport.rank() % 2 == 0 ? send() : receive();
    transport.rank() % 2 == 0 ? receive() : send();
    ++seq;
  });
}

double plain_mpi_time(Transport& transport, std::size_t bytes, int rounds) {
  const int peer = transport.rank() ^ 1;
  std::vector<std::byte> data(bytes);
  const auto send = [&] { MPI_Send(data.data(), static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD); };
  const auto receive = [&] {
    MPI_Recv(data.data(), static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  return measure(transport, rounds, [&] {
    transport.rank() % 2 == 0 ? send() : receive();
    transport.rank() % 2 == 0 ? receive() : send();
  });
}

struct alignas(64) Flag {
  std::atomic<int> turn{0};
};

double plain_flag_time(Transport& transport, Flag& flag, int rounds) {
  const int own = transport.rank() % 2;
  return measure(transport, rounds, [&] {
    for (unsigned idle = 0; flag.turn.load(std::memory_order_acquire) != own; ++idle) transport.pause(idle);
    flag.turn.store(1 - own, std::memory_order_release);
  });
}

void report(Transport& transport, const char* plain_name, std::size_t bytes, double channel, double plain) {
  if (transport.rank() == 0)
    std::printf("%s, %d ranks, %zu B: channel %.3f us, %s %.3f us, ratio %.2f\n", std::string(transport.name()).c_str(),
                transport.size(), bytes, channel, plain_name, plain, channel / plain);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5000;
  if (argc > 1 && std::atoi(argv[1]) > 0) {
    const int ranks = std::atoi(argv[1]) / 2 * 2;
    std::vector<Flag> flags(static_cast<std::size_t>(ranks / 2));
    run_local(ranks, [&](std::shared_ptr<Transport> transport) {
      for (const std::size_t bytes : sizes) {
        const double plain =
            plain_flag_time(*transport, flags[static_cast<std::size_t>(transport->rank() / 2)], rounds);
        report(*transport, "a bare flag", bytes, channels_time(*transport, bytes, rounds), plain);
      }
    });
    return 0;
  }
  const auto transport = mpi_world();
  if (transport->size() % 2 != 0) {
    std::fprintf(stderr, "kplan-ping-pong: %d ranks do not make pairs; start an even number\n", transport->size());
    return 2;
  }
  for (const std::size_t bytes : sizes) {
    const double plain = plain_mpi_time(*transport, bytes, rounds);
    report(*transport, "MPI_Send/MPI_Recv", bytes, channels_time(*transport, bytes, rounds), plain);
  }
  return 0;
}
