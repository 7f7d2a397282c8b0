#pragma once
// Hashes of bytes: XXH3, compiled in one place.

#include <cstddef>
#include <cstdint>
#include <span>

namespace kplan {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
};

std::uint64_t hash64(std::span<const std::byte> bytes);
Hash128 hash128(std::span<const std::byte> bytes);

}  // namespace kplan
