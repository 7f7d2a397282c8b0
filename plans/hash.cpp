#include "plans/hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kplan {

std::uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Hash128 hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

}  // namespace kplan
