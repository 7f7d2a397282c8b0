#include "engine/runtime/sent_letters.hpp"

#include <algorithm>

namespace kplan {

[[gnu::hot]] void SentLetters::clear() {
  memory_->grown.clear();
  list_.clear();
}

[[gnu::hot]] std::byte* SentLetters::add(transport::SparseExchange& exchange, int to, std::size_t bytes) {
  std::byte* letter = exchange.room(to, bytes);
  if (!letter) {
    const std::size_t k = list_.size();
    if (memory_->added.size() <= k) memory_->added.resize(k + 1);
    if (memory_->added[k].size() < bytes) memory_->added[k].resize(bytes);
    letter = memory_->added[k].data();
  }
  list_.push_back({to, {letter, bytes}});
  return letter;
}

[[gnu::hot]] void SentLetters::add_grown(std::uint64_t uniform_hash) {
  for (auto& [to, letter] : memory_->grown) {
    set_uniform_hash(letter, uniform_hash);
    list_.push_back({static_cast<int>(to), letter});
  }
}

void SentLetters::tell_failure(const std::exception_ptr& failure, std::span<const int> to) {
  clear();
  for (const int rank : to) grown(rank) = failure_letter(failure);
}

[[gnu::hot]] void SentLetters::add_heads(std::span<const int> to, std::uint64_t uniform_hash) {
  memory_->head = {LetterKind::head, uniform_hash};
  add_where_missing(to, std::as_bytes(std::span(&memory_->head, 1)));
}

[[gnu::hot]] void SentLetters::add_where_missing(std::span<const int> to, std::span<const std::byte> letter) {
  const std::size_t there = list_.size();
  for (const int rank : to) {
    const auto end = list_.begin() + static_cast<std::ptrdiff_t>(there);
    if (std::find_if(list_.begin(), end, [rank](const auto& l) { return l.to == rank; }) == end)
      list_.push_back({rank, letter});
  }
}

}  // namespace kplan
