#pragma once
// The two ends of a message brought together, where one rank knows both: each element goes straight from its source to
// its place.

#include <optional>
#include <utility>
#include <vector>

#include "engine/schedule/schedule.hpp"

namespace kplan {

/// Sending and receiving parts of the same elements, pair by pair with one nest, in the order in which the receiver
/// applies them.
using JoinedEnds = std::vector<std::pair<MessagePart, MessagePart>>;

/// Joins the parts of a message of one statement. Nothing where they do not fit, or there are too many elements to
/// look at one by one. Cost: by parts where both ends cut their elements alike, by elements otherwise.
std::optional<JoinedEnds> join_ends(const Statement& s, std::vector<MessagePart> from, std::vector<MessagePart> to);

/// A rank's own elements, and those of a message that go to the same places, on one nest.
struct MetShares {
  MessagePart from, to, arrived;
};

/// The own share and a message, part by part. None where they do not go to the same places, in loops without
/// lists, or where a place is met twice in one of them: then all of one must be applied before the other.
std::vector<MetShares> meet_shares(const Statement& s, const JoinedEnds& own, const Message& arrived);

}  // namespace kplan
