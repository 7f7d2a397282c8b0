// How it works: each allocation is a segment whose first page says which one it is and whether its owner has freed it;
// the file stays open as long as the owner has it. Others map it when they first meet its name, and let go of what was
// freed when they map the next one.
#include "transports/node/allocations.hpp"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>

#include "kplan/error.hpp"

namespace kplan::transport::node_path {
namespace {

/// The beginning of the first page.
struct Head {
  std::uint64_t mark = 0, serial = 0;
  std::atomic<std::uint64_t> is_freed{0};
};
constexpr std::uint64_t mark_of_head = 0x6b706c616e6d656d;
constexpr std::size_t head_bytes = 4096;

const Head& head_of(const Segment& segment) { return *reinterpret_cast<const Head*>(segment.data()); }

}  // namespace

std::shared_ptr<std::byte> Allocations::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  const std::shared_ptr<Segment> segment = Segment::reserve(head_bytes + std::max<std::size_t>(bytes, 1));
  auto* const head = new (segment->data()) Head;
  head->mark = mark_of_head;
  head->serial = next_serial_++;
  std::byte* const first = segment->data() + head_bytes;
  own_[first] = {first + std::max<std::size_t>(bytes, 1),
                 head->serial << 32 | static_cast<std::uint64_t>(segment->file())};
  return {first, [self = shared_from_this(), segment, head](std::byte* freed) {
            self->own_.erase(freed);
            head->is_freed.store(1, std::memory_order_release);
          }};
}

std::optional<RegionName> Allocations::name_of(const std::byte* region) {
  auto next = own_.upper_bound(region);
  if (next == own_.begin()) return std::nullopt;
  const auto& [first, own] = *--next;
  if (region >= own.end) return std::nullopt;
  return RegionName{own.memory, static_cast<std::uint64_t>(region - first)};
}

const std::byte* Allocations::find(int rank, const RegionName& name) {
  const std::pair<int, std::uint64_t> key(rank, name.memory);
  auto known = windows_.find(key);
  if (known == windows_.end()) {
    std::erase_if(windows_, [](const auto& window) {
      return head_of(*window.second).is_freed.load(std::memory_order_acquire) != 0;
    });
    try {
      auto segment = Segment::open_to_read(neighbours_->process(rank), static_cast<int>(name.memory & 0xffffffff));
      if (segment->bytes() <= head_bytes || head_of(*segment).mark != mark_of_head ||
          head_of(*segment).serial != name.memory >> 32)
        return nullptr;
      known = windows_.emplace(key, std::move(segment)).first;
    } catch (const TransportError&) {
      return nullptr;  // the sender sends a copy, then
    }
  }
  const Segment& segment = *known->second;
  return name.offset < segment.bytes() - head_bytes ? segment.data() + head_bytes + name.offset : nullptr;
}

}  // namespace kplan::transport::node_path
