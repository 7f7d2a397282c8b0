#pragma once
// The two ends of a message brought together, where one rank knows both: each element goes straight from its source to
// its place.

#include <optional>
#include <utility>
#include <vector>

#include "engine/schedule/schedule.hpp"

namespace kplan {

/// Sending and receiving transfers of the same elements, pair by pair with one nest, in the order in which the receiver
/// applies them.
using JoinedEnds = std::vector<std::pair<Transfer, Transfer>>;

/// Joins the transfers of a message of one statement. Nothing where they do not fit, or there are too many elements to
/// look at one by one. Cost: by transfers where both ends cut their elements alike, by elements otherwise.
std::optional<JoinedEnds> join_ends(const Statement& s, std::vector<Transfer> from, std::vector<Transfer> to);

/// A rank's own elements, and those of a message that go to the same places, on one nest.
struct MetShares {
  Transfer from, to, arrived;
};

/// The own share and a message, transfer by transfer. None where they do not go to the same places, in loops without
/// lists, or where a place is met twice in one of them: then all of one must be applied before the other.
std::vector<MetShares> meet_shares(const Statement& s, const JoinedEnds& own, const Message& arrived);

}  // namespace kplan
