// How it works: who sends to all others and who receives from all others decides; where all are sent the same, it is
// the operation that says so. Every rank judges its own messages, and what all can be part of is what it is.
#include "engine/schedule/collective.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/schedule/schedule.hpp"

namespace kplan {
namespace {

using transport::CollectiveKind;

constexpr std::uint32_t bit(CollectiveKind kind) { return 1u << static_cast<unsigned>(kind); }

bool are_alike(const Message& a, const Message& b) { return a.bytes == b.bytes && a.parts == b.parts; }

}  // namespace

CollectiveCandidates collective_candidates(const StatementSchedule& s) {
  CollectiveCandidates out;
  const auto others = static_cast<std::size_t>(std::max<std::int64_t>(s.size - 1, 0));
  if (others == 0 || s.members || s.knowledge.is_varying || s.knowledge.knowledge != KnowledgeClass::global) return out;
  const bool sends_to_all = s.sends.size() == others, receives_from_all = s.receives.size() == others;
  const bool sends_alike =
      sends_to_all && std::ranges::all_of(s.sends, [&](const Message& m) { return are_alike(m, s.sends[0]); });
  if (s.receives.empty() && sends_to_all) {
    out.kinds |= bit(CollectiveKind::scatter) | (sends_alike ? bit(CollectiveKind::broadcast) : 0);
    out.sender = s.rank;
  } else if (s.sends.empty() && s.receives.size() == 1) {
    out.kinds |= bit(CollectiveKind::scatter) | bit(CollectiveKind::broadcast);
    out.sender = s.receives[0].peer;
  }
  if (s.sends.empty() && receives_from_all) {
    out.kinds |= bit(CollectiveKind::gather);
    out.receiver = s.rank;
  } else if (s.receives.empty() && s.sends.size() == 1) {
    out.kinds |= bit(CollectiveKind::gather);
    out.receiver = s.sends[0].peer;
  }
  if (sends_to_all && receives_from_all)
    out.kinds |= bit(CollectiveKind::alltoall) | (sends_alike ? bit(CollectiveKind::allgather) : 0);
  return out;
}

CollectiveForm agreed_form(std::span<const CollectiveCandidates> ranks) {
  CollectiveForm out;
  if (ranks.empty()) return out;
  std::uint32_t kinds = ~0u;
  bool is_one_sender = true, is_one_receiver = true, is_native = true, is_in_two_steps = true;
  for (const CollectiveCandidates& c : ranks) {
    kinds &= c.kinds;
    is_one_sender = is_one_sender && c.sender == ranks[0].sender;
    is_one_receiver = is_one_receiver && c.receiver == ranks[0].receiver;
    is_native = is_native && c.wants_native;
    is_in_two_steps = is_in_two_steps && c.wants_two_steps;
  }
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::scatter, CollectiveKind::gather,
                                    CollectiveKind::allgather, CollectiveKind::alltoall}) {
    if ((kinds & bit(kind)) == 0) continue;
    const bool has_sender = kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter;
    if ((has_sender && !is_one_sender) || (kind == CollectiveKind::gather && !is_one_receiver)) continue;
    out.kind = kind;
    out.root = has_sender ? ranks[0].sender : kind == CollectiveKind::gather ? ranks[0].receiver : -1;
    out.is_in_two_steps = is_in_two_steps && kind == CollectiveKind::allgather;
    out.is_native = is_native && !out.is_in_two_steps;
    return out;
  }
  return out;
}

std::string to_text(const CollectiveForm& form, const Statement& s) {
  const bool combines = std::ranges::any_of(s.reductions, [](const Reduction& r) { return !r.is_assign; });
  switch (form.kind) {
    case CollectiveKind::broadcast: return fmt::format("broadcast from {}", form.root);
    case CollectiveKind::scatter: return fmt::format("scatter from {}", form.root);
    case CollectiveKind::gather: return fmt::format("{} to {}", combines ? "reduce" : "gather", form.root);
    case CollectiveKind::allgather:
      return !combines ? "allgather" : form.is_in_two_steps ? "allreduce in two steps" : "allreduce";
    case CollectiveKind::alltoall: return combines ? "reduce-scatter" : "alltoall";
    case CollectiveKind::none: break;
  }
  return "none";
}

}  // namespace kplan
