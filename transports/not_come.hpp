#pragma once
// What errors say of a collective call that some rank does not come to, alike on every backend.

#include <span>
#include <string>
#include <string_view>

#include "kplan/transport.hpp"

namespace kplan::transport {

/// Rounded to milliseconds: a rank reads the clock for what it waited a moment after it has set its deadline.
std::string in_seconds(Clock::duration time);

/// Why a call cannot succeed any more: a rank has waited so long for the others.
std::string waited_in_vain(int rank, std::string_view seconds, std::span<const int> missing, int ranks);
/// For a rank that hears why (KP-T001).
[[noreturn]] void throw_given_up(int rank, const std::string& why);
/// For a rank that waits for one that has ended (KP-T002).
[[noreturn]] void throw_ended(int rank, int ended);

}  // namespace kplan::transport
