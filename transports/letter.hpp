#pragma once
// A message of a sparse exchange in memory of kplan's own, the queues in which such letters wait, and the pool from
// which they come again, so that exchanges that look alike allocate nothing after the first few.

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "kplan/transport.hpp"
#include "transports/slot_memory.hpp"

namespace kplan::transport {

struct Letter {
  explicit Letter(std::size_t capacity) : memory(capacity, 1), capacity_bytes(capacity) {}

  std::byte* data() const { return memory.slot(0); }
  ReceivedLetter view() const { return {from, {data(), bytes}}; }

  SlotMemory memory;
  std::size_t capacity_bytes;
  std::size_t bytes = 0;
  int from = 0;
  bool is_expected = false;  ///< sent in an exchange whose receivers know their sources
  bool is_arriving = false;  ///< its bytes are still on their way
  std::uint64_t number = 0;  ///< of the exchange, among those whose receivers do not
  Letter* next = nullptr;    ///< in the list that owns it
};

using LetterPtr = std::unique_ptr<Letter>;

/// Letters in a row, first in, first out. Nothing here allocates.
class LetterList {
 public:
  LetterList() = default;
  ~LetterList();
  LetterList(LetterList&& other) noexcept;
  LetterList& operator=(LetterList&&) = delete;

  bool is_empty() const { return first_ == nullptr; }
  void push(LetterPtr letter) noexcept;
  void push_front(LetterPtr letter) noexcept;
  LetterPtr pop() noexcept;  ///< null if there is none

 private:
  Letter* first_ = nullptr;
  Letter* last_ = nullptr;
};

/// Letters to be used again, by capacity, which is a power of two. Holds what was in use at once at the most.
class LetterPool {
 public:
  /// A letter of `bytes` bytes, aligned to 64. Errors: std::bad_alloc.
  LetterPtr take(std::size_t bytes);
  LetterPtr copy(std::span<const std::byte> bytes, int from = 0);
  void give(LetterPtr letter) noexcept;
  void clear() noexcept;

 private:
  std::array<LetterList, 64> free_;
};

/// Sorts by sender, and leaves those of one sender in their order.
void order_by_sender(std::vector<ReceivedLetter>& letters);

}  // namespace kplan::transport
