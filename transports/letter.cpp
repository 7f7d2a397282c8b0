// How it works: the lists are chained through the letters. A pool has one list for each power of two; larger capacities
// than asked for cost address space only, since pages are first touched when they are written.
#include "transports/letter.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace kplan::transport {

LetterList::~LetterList() {
  while (pop()) {
  }
}

LetterList::LetterList(LetterList&& other) noexcept
    : first_(std::exchange(other.first_, nullptr)), last_(std::exchange(other.last_, nullptr)) {}

void LetterList::push(LetterPtr letter) noexcept {
  letter->next = nullptr;
  Letter*& place = first_ == nullptr ? first_ : last_->next;
  place = last_ = letter.release();
}

void LetterList::push_front(LetterPtr letter) noexcept {
  letter->next = first_;
  if (first_ == nullptr) last_ = letter.get();
  first_ = letter.release();
}

[[gnu::hot]] LetterPtr LetterList::pop() noexcept {
  LetterPtr letter(first_);
  if (letter) first_ = letter->next;
  return letter;
}

LetterPtr LetterPool::take(std::size_t bytes) {
  if (bytes > std::size_t{1} << 62) throw std::bad_alloc();
  const std::size_t capacity = std::bit_ceil(std::max(bytes, slot_alignment));
  LetterPtr letter = free_[static_cast<std::size_t>(std::countr_zero(capacity))].pop();
  if (!letter) letter = std::make_unique<Letter>(capacity);
  letter->bytes = bytes;
  return letter;
}

LetterPtr LetterPool::copy(std::span<const std::byte> bytes, int from) {
  LetterPtr letter = take(bytes.size());
  if (!bytes.empty()) std::memcpy(letter->data(), bytes.data(), bytes.size());
  letter->from = from;
  return letter;
}

void LetterPool::give(LetterPtr letter) noexcept {
  const std::size_t power = static_cast<std::size_t>(std::countr_zero(letter->capacity_bytes));
  free_[power].push_front(std::move(letter));  // the last one used is the warmest
}

void LetterPool::clear() noexcept {
  for (LetterList& list : free_)
    while (list.pop()) {
    }
}

[[gnu::hot]] void order_by_sender(std::vector<ReceivedLetter>& letters) {
  const auto is_before = [](const ReceivedLetter& a, const ReceivedLetter& b) { return a.from < b.from; };
  if (std::is_sorted(letters.begin(), letters.end(), is_before)) return;
  if (letters.size() > 32) return std::stable_sort(letters.begin(), letters.end(), is_before);
  for (auto end = letters.begin() + 1; end != letters.end(); ++end)  // without the memory that stable_sort asks for
    std::rotate(std::upper_bound(letters.begin(), end, *end, is_before), end, end + 1);
}

}  // namespace kplan::transport
