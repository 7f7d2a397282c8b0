#pragma once
// Cache lines that are asked for before they are needed, all at once: a loop that waits for each in turn waits longer.

#include <algorithm>
#include <cstddef>

namespace kplan {

/// A message of so many bytes, or so much of a longer one, is asked for before it is unpacked.
inline constexpr std::size_t asked_ahead_bytes = 4096;

[[gnu::always_inline]] inline void ask_for_lines(const std::byte* first, std::size_t bytes) {
  constexpr std::size_t line = 64;
  for (std::size_t k = 0; k < bytes; k += line) __builtin_prefetch(first + k);
}

/// The same for the beginning of what is read from the first byte to the last.
[[gnu::always_inline]] inline void ask_for_beginning(const std::byte* first, std::size_t bytes) {
  ask_for_lines(first, std::min(bytes, asked_ahead_bytes));
}

}  // namespace kplan
