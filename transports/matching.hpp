#pragma once
// What `open` does alike on every backend: the two ranks of a channel tell each other of its ends, both judge them by
// the same rule, and all ranks learn what was found wrong, so that either every rank throws, with the same words, or
// none does. What that costs a rank grows with its own channels, and with the number of ranks only by a few bytes each.

#include <compare>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "kplan/transport.hpp"
#include "transports/announcement.hpp"

namespace kplan::transport {

/// Which channel an end belongs to, and which of its ends it is.
struct EndName {
  int sender = 0, receiver = 0;
  std::uint32_t id = 0;
  Direction direction = Direction::send;
  auto operator<=>(const EndName&) const = default;
  bool is_channel_of(const EndName& other) const {
    return sender == other.sender && receiver == other.receiver && id == other.id;
  }
};

/// What keeps a rank from opening its channels.
struct Problem {
  std::string what;          ///< empty: nothing
  bool is_mismatch = false;  ///< of the ends of a channel: all ranks are told of the first of these
  EndName end = {};          ///< then
  explicit operator bool() const { return !what.empty(); }
};

/// A rank's own ends as announcements to the ranks at their other ends, as far as there are such ranks.
std::vector<Announcement> announcements_of(std::span<const ChannelSpec> specs, int own_rank, int ranks);

/// What a rank knows of its ends.
struct Matching {
  std::vector<int> lanes;            ///< of each end: its number, from 0, among the channels of (sender, receiver)
  std::vector<bool> has_placed_end;  ///< of each: whether it, or its other end, is placed
  /// Of each: the bytes of its messages that go ahead at a time; 0: they go as a whole.
  std::vector<std::size_t> ahead_bytes;
  int lane_count = 0;  ///< the most channels between this rank and another, one way
  Problem problem;     ///< the first end, by its name, that is invalid, doubled, or does not fit its other end
};

/// Whether a sending end may have several receivers.
enum class Reach : std::uint8_t { one, several };

/// Pairs a rank's own ends with those that others have told it of, by announcements_of. Cost: O(e log e) for e ends of
/// both.
Matching match(std::span<const ChannelSpec> specs, std::span<const Announcement> told, int own_rank, int ranks,
               Reach reach = Reach::one);

/// Collective: throws on every rank, with the same words, if any has a problem; else returns the largest of the ranks'
/// `number`s. Errors: TransportError for the first mismatch, or for the first rank with another problem.
int agree(Transport& transport, const Problem& problem, Clock::time_point deadline, int number = 0);

/// What an error says, to be told as part of another.
std::string without_code(const std::exception& error);

/// `rank 3`, or `ranks 1, 3`; at most eight are named.
std::string rank_list(std::span<const int> ranks);

}  // namespace kplan::transport
