#pragma once
// Notices as bytes on their way: 64-bit words in the machine's order.

#include <cstddef>
#include <span>
#include <vector>

#include "engine/analysis/pattern.hpp"

namespace kplan {

/// Appends the notice of one statement; its peer is not part of it. A multiple of 8 bytes.
void append_notice(int statement, const Notice& notice, Unfilled<std::byte>& bytes);

/// Takes the next notice off the front of `bytes`. Throws TransportError KP-T012 where they are none.
struct NumberedNotice {
  int statement = 0;
  Notice notice;
};
NumberedNotice take_notice(std::span<const std::byte>& bytes, std::int64_t peer);

}  // namespace kplan
