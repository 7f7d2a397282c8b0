#include "engine/schedule/ends.hpp"

#include <fmt/format.h>

namespace kplan {

PlanError ends_differ(const PlanModel& plan, const Statement& s, std::int64_t sender, std::int64_t receiver,
                      std::int64_t sent, std::int64_t expected) {
  const std::string what =
      sent != expected
          ? fmt::format("rank {} sends {} elements to rank {}, which expects {}", sender, sent, receiver, expected)
          : fmt::format(
                "rank {}, which sends, and rank {}, which receives, disagree about the where-bound values, or "
                "the lengths of the slices, of the {} elements between them",
                sender, receiver, sent);
  return error_in(
      plan, s, s.reductions[0].span, "KP-A003",
      fmt::format("statement {}: {}; {}", s.name, what,
                  s.claimed ? "the claim of corresponding knowledge is wrong" : "the sizes of its slices must match"));
}

}  // namespace kplan
