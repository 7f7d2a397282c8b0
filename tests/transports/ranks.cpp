#include "tests/transports/ranks.hpp"

#include <malloc.h>

#include <stdexcept>

namespace kplan::tests {

void claim(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error("does not hold: " + std::string(what));
}

Clock::time_point soon() { return Clock::now() + std::chrono::seconds(60); }

void fill(std::byte* to, std::size_t bytes, unsigned seed, std::uint64_t seq) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = expected_byte(seed, seq, i);
}

void claim_filled(const std::byte* from, std::size_t bytes, unsigned seed, std::uint64_t seq) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (from[i] != expected_byte(seed, seq, i))
      claim(false, "byte " + std::to_string(i) + " of message " + std::to_string(seq) + " is what was sent");
  }
}

void send(Transport& transport, Channel& channel, std::uint64_t seq, std::size_t bytes, unsigned seed) {
  std::byte* const slot = wait_for(transport, "a slot", [&] { return channel.send_slot(seq); });
  fill(slot, bytes, seed, seq);
  channel.put(seq, bytes);
}

void receive(Transport& transport, Channel& channel, std::uint64_t seq, std::size_t bytes, unsigned seed) {
  claim_filled(wait_for(transport, "a message", [&] { return channel.arrived(seq); }), bytes, seed, seq);
  channel.release(seq);
}

std::vector<std::unique_ptr<Channel>> open_ring(Transport& transport, std::size_t capacity_bytes, int slots,
                                                bool may_leave_messages) {
  const int next = (transport.rank() + 1) % transport.size();
  const int before = (transport.rank() + transport.size() - 1) % transport.size();
  ChannelSpec specs[] = {{next, 0, capacity_bytes, slots, Direction::send},
                         {before, 0, capacity_bytes, slots, Direction::receive}};
  for (ChannelSpec& spec : specs) spec.may_leave_messages = may_leave_messages;
  return transport.open(specs, soon());
}

std::unique_ptr<Channel> open_one(Transport& transport, std::size_t capacity_bytes, int slots) {
  std::vector<ChannelSpec> specs;
  if (transport.rank() == 0) specs.push_back({1, 4, capacity_bytes, slots, Direction::send});
  if (transport.rank() == 1) specs.push_back({0, 4, capacity_bytes, slots, Direction::receive});
  auto channels = transport.open(specs, soon());
  return channels.empty() ? nullptr : std::move(channels.front());
}

std::size_t allocated_bytes() { return mallinfo2().uordblks; }

void meet(Transport& transport) { (void)transport.allgather("", soon()); }

}  // namespace kplan::tests
