#pragma once
// What is said where the two ends of a message are not of one mind.

#include <cstdint>

#include "plans/model.hpp"

namespace kplan {

/// KP-A003: what the sender sends in a statement is not what the receiver expects, by numbers of elements; where these
/// are the same, by what the elements are.
PlanError ends_differ(const PlanModel& plan, const Statement& s, std::int64_t sender, std::int64_t receiver,
                      std::int64_t sent, std::int64_t expected);

}  // namespace kplan
