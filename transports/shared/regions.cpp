#include "transports/shared/regions.hpp"

#include <algorithm>
#include <cstdint>

namespace kplan::transport {
namespace {

void add(std::byte* first, std::size_t bytes, std::vector<iovec>& out) {
  if (!out.empty() && static_cast<std::byte*>(out.back().iov_base) + out.back().iov_len == first)
    out.back().iov_len += bytes;
  else out.push_back({first, bytes});
}

/// What the loops from number `depth` on repeat, at that address.
void add(const Blocks& nest, std::size_t depth, std::byte* first, std::vector<iovec>& out) {
  if (depth == nest.counts.size()) return add(first, static_cast<std::size_t>(nest.block_bytes), out);
  for (std::int64_t k = 0; k < nest.counts[depth]; ++k)
    add(nest, depth + 1, first + k * nest.strides_bytes[depth], out);
}

}  // namespace

bool Place::move_to(std::span<const Blocks> blocks) {
  if (std::ranges::equal(blocks, blocks_)) return false;
  blocks_.assign(blocks.begin(), blocks.end());
  regions_.clear();
  for (const Blocks& b : blocks)
    for (const std::int64_t offset : b.offsets_bytes) add(b, 0, b.base + offset, regions_);
  return true;
}

}  // namespace kplan::transport
