#pragma once
// The memory of a channel's slots: one block, each slot on a 64-byte boundary. Its pages are first touched by
// whoever first writes them, so large slots that only ever lend regions cost nothing.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>

namespace kplan::transport {

inline constexpr std::size_t slot_alignment = 64;

class SlotMemory {
 public:
  /// No memory.
  SlotMemory() = default;
  /// Errors: std::bad_alloc.
  SlotMemory(std::size_t capacity_bytes, int slots) {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 2;
    if (capacity_bytes > most / static_cast<std::size_t>(slots) - slot_alignment) throw std::bad_alloc();
    stride_ = (capacity_bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
    block_.reset(static_cast<std::byte*>(
        ::operator new (stride_* static_cast<std::size_t>(slots), std::align_val_t{slot_alignment})));
  }

  std::byte* slot(std::size_t index) const { return block_.get() + index * stride_; }

  /// Gives the memory up without freeing it, for when something may still read or write it.
  void leak() { (void)block_.release(); }

 private:
  struct Free {
    void operator()(std::byte* block) const { ::operator delete (block, std::align_val_t{slot_alignment}); }
  };
  std::size_t stride_ = 0;
  std::unique_ptr<std::byte, Free> block_;
};

}  // namespace kplan::transport
