#include "engine/runtime/uniform_history.hpp"

#include <algorithm>
#include <cstring>

namespace kplan {

using transport::Direction;

UniformHistory::UniformHistory(const BoundPlan& bound, std::vector<End> ends)
    : rank_(static_cast<int>(bound.state.rank)),
      values_(*bound.model),
      width_(1 + values_.size()),
      ends_(std::move(ends)) {
  values_.read(bound);
  add();
  for (End& end : ends_) {
    has_due_ = has_due_ || end.is_due;
    if (end.direction == Direction::send) end.entry = end_;
  }
}

void UniformHistory::add() {
  const std::size_t size = entries_.size();
  entries_.resize(size + width_);
  entries_[size] = time_;
  std::ranges::copy(values_.words(), entries_.begin() + static_cast<std::ptrdiff_t>(size) + 1);
  ++end_;
}

[[gnu::hot]] void UniformHistory::note(const BoundPlan& bound) {
  values_.read(bound);
  if (ends_.empty()) return;
  forget();
  add();
  if (has_due_) tell();
}

[[gnu::hot]] std::size_t UniformHistory::first_needed() const {
  std::size_t out = end_;
  for (const End& end : ends_) out = std::min(out, end.entry);
  return out;
}

[[gnu::hot]] void UniformHistory::forget() {
  constexpr std::size_t fewest = 32;  // moving the others costs more
  if (end_ - first_ <= fewest) [[likely]]
    return;
  const std::size_t count = first_needed() - first_;
  if (count < fewest || count < (end_ - first_) / 2) return;
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count * width_));
  first_ += count;
}

[[gnu::hot]] void UniformHistory::put_values(std::byte* to) const {
  std::memcpy(to, values_.words().data(), values_.bytes());
}

[[gnu::hot]] std::exception_ptr UniformHistory::compare(int rank, const std::byte* values) const {
  if (std::memcmp(values, values_.words().data(), values_.bytes()) == 0) [[likely]]
    return nullptr;
  std::vector<std::uint64_t> theirs(values_.size());
  std::memcpy(theirs.data(), values, values_.bytes());
  return values_.difference(time_ - 1, {rank_, values_.words()}, {rank, theirs});
}

[[gnu::hot]] std::exception_ptr UniformHistory::move_on() {
  tell();
  for (End& end : ends_)
    if (end.direction == Direction::receive)
      if (auto out = compare_with(end)) return out;
  return nullptr;
}

[[gnu::hot]] bool UniformHistory::tell() {
  bool is_all = true;
  for (End& end : ends_) {
    if (end.direction != Direction::send) continue;
    tell(end);
    is_all = is_all && !is_behind(end);
  }
  return is_all;
}

/// A message: how many entries, and these.
[[gnu::hot]] void UniformHistory::tell(End& to) const {
  while (to.entry < end_) {
    std::byte* const slot = to.channel->send_slot(to.next);
    if (!slot) return;
    const std::uint64_t count = std::min(end_ - to.entry, entries_a_message);
    const std::size_t bytes = word_bytes * width_ * count;
    std::memcpy(slot, &count, word_bytes);
    std::memcpy(slot + word_bytes, entry(to.entry), bytes);
    to.channel->put(to.next++, word_bytes + bytes);
    to.entry += count;
  }
}

/// What is of runs that this rank has not begun stays for later.
[[gnu::hot]] std::exception_ptr UniformHistory::compare_with(End& from) const {
  while (const std::byte* const message = from.channel->arrived(from.next)) {
    std::uint64_t count = 0;
    std::memcpy(&count, message, word_bytes);
    if (count > entries_a_message)
      return std::make_exception_ptr(TransportError(
          "KP-T012", "a comparison of uniform parameters has come damaged; do all ranks run one build?"));
    for (; from.taken < count; ++from.taken) {
      // Slots are aligned as words are.
      const auto* const theirs = reinterpret_cast<const std::uint64_t*>(message) + 1 + from.taken * width_;
      if (*theirs > time_) return nullptr;
      while (from.entry + 1 < end_ && *entry(from.entry + 1) <= *theirs) ++from.entry;
      const UniformWords mine{rank_, values_of(entry(from.entry))}, other{from.rank, values_of(theirs)};
      if (!std::ranges::equal(mine.words, other.words)) return values_.difference(*theirs - 1, mine, other);
      from.seen = *theirs;
    }
    from.channel->release(from.next++);
    from.taken = 0;
  }
  return nullptr;
}

[[gnu::hot]] bool UniformHistory::is_behind(const End& end) const {
  return end.direction == Direction::send ? end.entry < end_ : end.seen < *entry(end_ - 1);
}

[[gnu::hot]] bool UniformHistory::is_any_due_behind(Direction direction) const {
  return std::ranges::any_of(
      ends_, [&](const End& end) { return end.is_due && end.direction == direction && is_behind(end); });
}

std::vector<int> UniformHistory::waits_for() const {
  std::vector<int> out;
  for (const End& end : ends_)
    if (is_behind(end) && (end.is_due || is_full())) out.push_back(end.rank);
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

}  // namespace kplan
