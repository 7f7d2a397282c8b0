#include "engine/runtime/sent_letters.hpp"

#include <algorithm>

namespace kplan {

[[gnu::hot]] void SentLetters::clear(std::span<EnclosedMessage> enclosed) {
  forget();
  enclosed_ = enclosed;
  places_.resize(enclosed.size());
}

[[gnu::hot]] void SentLetters::forget() {
  memory_->grown.clear();
  list_.clear();
}

/// A letter of so many bytes of its own with what it carries.
[[gnu::hot]] SentLetters::Whole SentLetters::whole(int to, std::size_t bytes) const {
  for (std::size_t k = 0; k < enclosed_.size(); ++k)
    if (enclosed_[k].peer == to) return {k, aligned_in_letter(bytes) + enclosed_[k].bytes};
  return {none, bytes};
}

[[gnu::hot]] std::byte* SentLetters::add(int to, std::byte* letter, const Whole& whole) {
  if (whole.enclosed != none) places_[whole.enclosed] = letter + whole.bytes - enclosed_[whole.enclosed].bytes;
  list_.push_back({to, {letter, whole.bytes}});
  return letter;
}

[[gnu::hot]] std::byte* SentLetters::add_here(int to, const Whole& whole) {
  const std::size_t k = list_.size();
  if (memory_->added.size() <= k) memory_->added.resize(k + 1);
  if (memory_->added[k].size() < whole.bytes) memory_->added[k].resize(whole.bytes);
  return add(to, memory_->added[k].data(), whole);
}

[[gnu::hot]] std::byte* SentLetters::add_in_room(transport::SparseExchange& exchange, int to, std::size_t bytes) {
  const Whole letter = whole(to, bytes);
  std::byte* const room = exchange.room(to, letter.bytes);
  return room ? add(to, room, letter) : nullptr;
}

[[gnu::hot]] std::byte* SentLetters::add(transport::SparseExchange& exchange, int to, std::size_t bytes) {
  if (std::byte* const letter = add_in_room(exchange, to, bytes)) return letter;
  return add_here(to, whole(to, bytes));
}

SentLetters::Body& SentLetters::body() {
  const std::size_t k = list_.size() - 1;
  if (memory_->bodies.size() <= k) memory_->bodies.resize(k + 1);
  return memory_->bodies[k];
}

std::byte* SentLetters::add_body(std::size_t bytes) {
  Body& added = body();
  if (added.packed.size() < bytes) added.packed.resize(bytes);
  const std::span<const std::byte> packed = std::span(added.packed).first(bytes);
  add_body(std::span(&packed, 1));
  return added.packed.data();
}

void SentLetters::add_body(std::span<const std::span<const std::byte>> regions) {
  Body& added = body();
  added.regions.assign(regions.begin(), regions.end());
  list_.back().body = added.regions;
}

[[gnu::hot]] void SentLetters::add_grown(std::uint64_t uniform_hash) {
  for (auto& [to, letter] : memory_->grown) {
    set_uniform_hash(letter, uniform_hash);
    const Whole all = whole(static_cast<int>(to), letter.size());
    letter.resize(all.bytes);
    add(static_cast<int>(to), letter.data(), all);
  }
}

void SentLetters::tell_failure(const std::exception_ptr& failure, std::span<const int> to) {
  forget();
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
    if (std::find_if(list_.begin(), end, [rank](const auto& l) { return l.to == rank; }) != end) continue;
    const Whole all = whole(rank, letter.size());
    if (all.enclosed == none) list_.push_back({rank, letter});
    else std::ranges::copy(letter, add_here(rank, all));
  }
}

[[gnu::hot]] void SentLetters::enclose(const RunContext& context) {
  for (std::size_t k = 0; k < enclosed_.size(); ++k) context.pack(enclosed_[k].calls, places_[k]);
}

}  // namespace kplan
