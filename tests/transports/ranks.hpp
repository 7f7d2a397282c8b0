#pragma once
// What the conformance cases need of a backend. A case is written once, as the body of a rank; local_ranks.cpp runs it
// on threads, mpi_ranks.cpp on the processes that mpirun started. Catch2's assertions are not for several threads:
// bodies use claim(), which throws, and on_ranks makes that the failure of the case.

#include <functional>
#include <string>
#include <string_view>

#include "kplan/transport.hpp"

namespace kplan::tests {

using transport::Channel;
using transport::ChannelSpec;
using transport::Clock;
using transport::Direction;
using transport::Transport;

/// Runs `body` on that many ranks, and throws if one of them failed. Does nothing where there are not so many
/// processes.
void on_ranks(int ranks, const std::function<void(Transport&)>& body);

/// How many messages a sender can be ahead of a receiver that takes none.
int most_ahead(int slots);

/// How many channels at once the cases open: MPI has at least one request for each slot of each of them.
int many_channels();

inline constexpr int rank_counts[] = {1, 2, 3, 5};

/// Throws unless it holds.
void claim(bool holds, std::string_view what);

/// The time by which everything in a case has happened, unless something is wrong.
Clock::time_point soon();

/// Calls `poll` until what it gives converts to true, and returns that; throws when it takes too long.
template <class Poll>
auto wait_for(Transport& transport, const char* what, Poll poll) {
  const Clock::time_point deadline = soon();
  for (unsigned idle = 0;; ++idle) {
    if (auto result = poll()) return result;
    transport.progress();
    transport.pause(idle);
    if (idle % 64 == 63) claim(Clock::now() < deadline, std::string("waited too long for ") + what);
  }
}

/// Byte `i` of message `seq` in the stream `seed`.
inline std::byte expected_byte(unsigned seed, std::uint64_t seq, std::size_t i) {
  return static_cast<std::byte>((seed * 31 + seq * 131 + i * 7 + (i >> 8) * 3 + (i >> 16)) & 0xff);
}
void fill(std::byte* to, std::size_t bytes, unsigned seed, std::uint64_t seq);
void claim_filled(const std::byte* from, std::size_t bytes, unsigned seed, std::uint64_t seq);

/// Waits for the slot, fills it and puts it.
void send(Transport& transport, Channel& channel, std::uint64_t seq, std::size_t bytes, unsigned seed);
/// Waits for the message, checks it and releases it.
void receive(Transport& transport, Channel& channel, std::uint64_t seq, std::size_t bytes, unsigned seed);

/// A channel from each rank to the next one and one from the rank before, as [to, from]. Needs two ranks.
std::vector<std::unique_ptr<Channel>> open_ring(Transport& transport, std::size_t capacity_bytes, int slots,
                                                bool may_leave_messages = false);

/// Opens one channel from rank 0 to rank 1; the other ranks get null.
std::unique_ptr<Channel> open_one(Transport& transport, std::size_t capacity_bytes, int slots);

/// What the process has allocated and not freed, by all threads. Of no use under sanitizers, which have an allocator of
/// their own, and look for leaks themselves.
std::size_t allocated_bytes();

/// The message of the E that `call` throws, or `no error`.
template <class E = kplan::TransportError, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

/// Waits until all ranks are here.
void meet(Transport& transport);

}  // namespace kplan::tests
