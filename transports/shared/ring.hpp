#pragma once
// A channel between two ends that share memory, threads or processes of a node: a ring of slots. The word that says
// which message a slot holds, and how, stands behind the slot's bytes, on the last of their cache lines: a small
// message and its word are one line, or a part of one. One counter, on a line of its own, says how many were released.
// A ring may have several receivers, each with such a line; a slot is free when all have released it.

#include <memory>

#include "kplan/transport.hpp"
#include "transports/shared/distance.hpp"
#include "transports/shared/names.hpp"

namespace kplan::transport {

/// A receiving end's place among those of its ring.
struct ReceiverPlace {
  std::uint32_t number = 0, count = 1;
};

/// The receivers of a sending end, and their places.
template <class F>
void each_receiver(const ChannelSpec& sender, const F& f) {
  ReceiverPlace place{0, static_cast<std::uint32_t>(1 + sender.other_receivers.size())};
  f(sender.peer, place);
  for (const int receiver : sender.other_receivers) {
    ++place.number;
    f(receiver, place);
  }
}

/// Bytes of memory that the ring of a sending end takes; a multiple of 64. Errors: std::bad_alloc.
std::size_t ring_bytes(const ChannelSpec& sender);

/// How many slots a ring for messages of so many bytes had best have, where so many ranks share memory. Messages of up
/// to 4 KiB: as many as stay in the first cache with what else is there, 8 or more (of 800 bytes, 8 take 0.8 of the
/// time of 32). Longer ones: a slot is written again when its lines have left the caches of both ends' cores for one
/// that they share. Lines that are still there cost two to three times as much, as measured with messages of 24 KiB to
/// 1 MiB. Two for long messages, and where many ranks would need much memory. Ranks that `share_cores` share the caches
/// of those as well, so that few lines are best.
int best_ring_slots(std::size_t bytes, int ranks, bool share_cores);

/// Messages of so many bytes and less had better go together through one ring.
inline constexpr std::size_t best_shared_ring_bytes = 1024;

/// The memory of a ring, aligned to 64, kept alive by its owner.
struct RingMemory {
  std::shared_ptr<void> owner;
  std::byte* base = nullptr;
};

/// A ring for one of its receivers.
struct OfferedRing {
  RingMemory memory;
  ReceiverPlace place;
};

/// Memory of this process for a ring that threads share. Pages of slots are first touched by whoever writes them.
/// Errors: std::bad_alloc, TransportError.
RingMemory new_ring(const ChannelSpec& sender);

/// Makes memory in which another ring has been as it is before the first end.
void clear_ring(std::byte* base, const ChannelSpec& sender);

/// The ends of the ring in that memory, which new_ring made, or which was all zeros, or cleared, before the first end.
/// They keep `names` and `distance`: to the first receiver, or from the sender.
std::unique_ptr<Channel> sending_end(RingMemory memory, const ChannelSpec& spec, std::shared_ptr<RegionNames> names,
                                     std::shared_ptr<Distance> distance);
std::unique_ptr<Channel> receiving_end(OfferedRing ring, const ChannelSpec& spec, std::shared_ptr<RegionNames> names,
                                       std::shared_ptr<Distance> distance);

}  // namespace kplan::transport
