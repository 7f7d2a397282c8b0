// How it works: allocations lie in segments, long ones each in its own; short ones share them, since each costs an open
// file and whole pages. A segment's first page says which one it is and whether its owner has freed all in it; the file
// stays open until then, since others map it when they first meet its name. They let go of what was freed when they map
// the next one.
#include "transports/node/allocations.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "kplan/error.hpp"
#include "transports/slot_memory.hpp"

namespace kplan::transport::node_path {
namespace {

/// The beginning of the first page.
struct Head {
  std::uint64_t mark = 0, serial = 0;
  std::atomic<std::uint64_t> is_freed{0};
};
constexpr std::uint64_t mark_of_head = 0x6b706c616e6d656d;
constexpr std::size_t head_bytes = 4096;
constexpr std::size_t longest_short = 32 << 10, bytes_for_short = 256 << 10;

const Head& head_of(const Segment& segment) { return *reinterpret_cast<const Head*>(segment.data()); }

}  // namespace

/// A segment of this process's, for as long as an allocation in it lives.
struct Allocations::Own {
  Own(std::shared_ptr<Allocations> all, std::size_t bytes)
      : owner(std::move(all)), segment(Segment::reserve(head_bytes + bytes)), head(new (segment->data()) Head) {
    head->mark = mark_of_head;
    head->serial = owner->next_serial_++;
    memory = head->serial << 32 | static_cast<std::uint64_t>(segment->file());
    end = segment->data() + head_bytes;
    owner->own_[end] = this;
  }
  ~Own() {
    owner->own_.erase(segment->data() + head_bytes);
    head->is_freed.store(1, std::memory_order_release);
  }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;

  std::size_t left() const { return static_cast<std::size_t>(segment->data() + segment->bytes() - end); }

  std::shared_ptr<Allocations> owner;
  std::shared_ptr<Segment> segment;
  Head* head;
  std::uint64_t memory;  ///< its name
  std::byte* end;        ///< of what is allocated
};

std::shared_ptr<std::byte> Allocations::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  bytes = (std::max<std::size_t>(bytes, 1) + slot_alignment - 1) / slot_alignment * slot_alignment;
  const bool is_short = bytes <= longest_short;
  std::shared_ptr<Own> own = is_short ? open_.lock() : nullptr;
  if (!own || own->left() < bytes) {
    own = std::make_shared<Own>(shared_from_this(), is_short ? bytes_for_short : bytes);
    if (is_short) open_ = own;
  }
  std::byte* const first = std::exchange(own->end, own->end + bytes);
  return {std::move(own), first};
}

std::optional<RegionName> Allocations::name_of(const std::byte* region) {
  auto next = own_.upper_bound(region);
  if (next == own_.begin()) return std::nullopt;
  const auto& [first, own] = *--next;
  if (region >= own->end) return std::nullopt;
  return RegionName{own->memory, static_cast<std::uint64_t>(region - first)};
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
