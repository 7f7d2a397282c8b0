#pragma once
// Statements whose messages, of all ranks together, are one collective operation.

#include <span>
#include <string>

#include "kplan/transport.hpp"

namespace kplan {

struct Statement;
struct StatementSchedule;

/// A statement as a collective operation.
struct CollectiveForm {
  transport::CollectiveKind kind = transport::CollectiveKind::none;
  std::int64_t root = -1;
  bool is_native = false;        ///< runs as one of the transport's own
  bool is_in_two_steps = false;  ///< an all-reduce of shares, which are exchanged then
  bool operator==(const CollectiveForm&) const = default;
};

/// What one rank's messages of a statement can be part of.
struct CollectiveCandidates {
  std::uint32_t kinds = 0;                  ///< a bit each
  std::int64_t sender = -1, receiver = -1;  ///< the root of broadcast and scatter; of gather
  bool wants_native = false, wants_two_steps = false;
  bool moves_something = false;  ///< the rank, in the statement, whatever it is
};

/// Of statements that run in the world, with global knowledge and a fixed pattern; none for others.
CollectiveCandidates collective_candidates(const StatementSchedule& s);

/// What all ranks' candidates agree in; the operation with the fewest bytes where there are several.
CollectiveForm agreed_form(std::span<const CollectiveCandidates> ranks);

/// `broadcast from 2`, `allgather`; where values are combined with what places hold, `reduce to 2`, `allreduce`,
/// `reduce-scatter`.
std::string to_text(const CollectiveForm& form, const Statement& s);

}  // namespace kplan
