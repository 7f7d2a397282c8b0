#pragma once
// What `open` does alike on every backend: all ranks learn all ends and judge them by the same rule, so that either
// every rank throws, with the same words, or none does.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::transport {

/// The ends of one rank as bytes for allgather. All ranks must have the same byte order.
std::string encode(std::span<const ChannelSpec> specs);

/// What the ranks agreed to open.
struct Matching {
  std::vector<int>
      lanes;  ///< of each of the rank's own ends: its number, from 0, among the channels of (sender, receiver)
  std::vector<bool> has_placed_end;  ///< of each of them: whether it, or its other end, is placed
  int lane_count = 0;                ///< the most channels that any (sender, receiver) has
};

/// Whether a sending end may have several receivers.
enum class Reach : std::uint8_t { one, several };

/// Pairs the ends of all ranks, `lists` in rank order as encode gave them. Errors: TransportError for the first end,
/// in the order of sender, receiver and id, that is invalid, doubled, or does not fit its other end; the same on every
/// rank. Cost: O(e log e) time and O(e) memory for e ends of all ranks.
Matching match(std::span<const std::string> lists, int own_rank, Reach reach = Reach::one);

/// Collective: throws on every rank if any rank has a problem to tell, and returns on every rank if none has.
void agree(Transport& transport, std::string_view problem, Clock::time_point deadline);

/// Throws if a rank has a problem to tell; `problems` by rank, as all ranks know them.
void throw_first(std::span<const std::string> problems);

/// `rank 3`, or `ranks 1, 3`; at most eight are named.
std::string rank_list(std::span<const int> ranks);

}  // namespace kplan::transport
