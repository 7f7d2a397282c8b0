#pragma once
// Blocks of memory, byte by byte, and memory that nobody has written.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::tests {

inline constexpr std::byte untouched{0xee};

/// Calls f(byte) for each byte that the blocks are of, in order.
template <class F>
void each_byte(const std::vector<transport::Blocks>& blocks, const F& f) {
  for (const transport::Blocks& b : blocks)
    for (const std::int64_t offset : b.offsets_bytes) {
      std::int64_t count = 1;
      for (const std::int64_t n : b.counts) count *= n;
      for (std::int64_t k = 0; k < count; ++k) {
        std::byte* at = b.base + offset;
        for (std::int64_t d = static_cast<std::int64_t>(b.counts.size()), left = k; d-- > 0;) {
          const auto loop = static_cast<std::size_t>(d);
          at += left % b.counts[loop] * b.strides_bytes[loop];
          left /= b.counts[loop];
        }
        for (std::int64_t i = 0; i < b.block_bytes; ++i) f(at[i]);
      }
    }
}

}  // namespace kplan::tests
