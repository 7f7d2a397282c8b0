// How it works: every rank has two parts of memory, for gatherings of odd and even numbers. A rank that writes for
// gathering n + 2 has taken n + 1, which all have begun, after they had taken n: nobody reads the part any more.
#include "transports/node/gathering.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "transports/node/segments_of_all.hpp"

namespace kplan::transport::node_path {

struct alignas(64) Gathering::Part {
  std::atomic<std::uint64_t> number;  ///< of the gathering that the bytes are for
  std::uint64_t count;                ///< of bytes; they are here if they are at most most_bytes
  bool is_free;
  alignas(64) char bytes[most_bytes];
};

/// What one rank writes and the others read.
struct Gathering::Memory {
  static constexpr std::size_t most_why = 512 - 8;
  std::atomic<bool> has_given_up;
  char why[most_why];
  Part parts[2];
};

Gathering::Gathering(Transport& base, const Neighbours& neighbours, Clock::time_point deadline)
    : rank_(base.rank()), segments_(segments_of_all(base, neighbours, sizeof(Memory), deadline)) {}

Gathering::Memory& Gathering::memory(int rank) const {
  return *reinterpret_cast<Memory*>(segments_[static_cast<std::size_t>(rank)]->data());
}

Gathering::Part& Gathering::part(int rank) const { return memory(rank).parts[number_ % 2]; }

bool Gathering::has_begun(int rank) const { return part(rank).number.load(std::memory_order_acquire) == number_; }

void Gathering::begin(std::string_view mine, bool is_free) {
  ++number_;
  came_ = 0;
  Part& own = part(rank_);
  own.count = mine.size();
  own.is_free = is_free;
  if (mine.size() <= most_bytes) std::ranges::copy(mine, own.bytes);
  own.number.store(number_, std::memory_order_release);
}

bool Gathering::is_complete() {
  while (std::cmp_less(came_, segments_.size()) && has_begun(came_)) ++came_;
  return std::cmp_equal(came_, segments_.size());
}

std::vector<int> Gathering::waits_for() const {
  std::vector<int> out;
  for (int rank = 0; std::cmp_less(rank, segments_.size()); ++rank)
    if (!has_begun(rank)) out.push_back(rank);
  return out;
}

void Gathering::give_up(std::string_view why) {
  Memory& own = memory(rank_);
  std::ranges::copy(why.substr(0, Memory::most_why - 1), own.why);
  own.has_given_up.store(true, std::memory_order_release);
}

std::string Gathering::given_up() const {
  for (int rank = 0; std::cmp_less(rank, segments_.size()); ++rank)
    if (memory(rank).has_given_up.load(std::memory_order_acquire)) return memory(rank).why;
  return {};
}

std::optional<std::vector<std::string>> Gathering::take() {
  std::vector<std::string> out;
  bool fits = true;
  were_all_free_ = true;
  for (int rank = 0; std::cmp_less(rank, segments_.size()); ++rank) {
    const Part& p = part(rank);
    fits = fits && p.count <= most_bytes;
    were_all_free_ = were_all_free_ && p.is_free;
    if (fits) out.emplace_back(p.bytes, p.count);
  }
  if (!fits) return std::nullopt;
  return out;
}

}  // namespace kplan::transport::node_path
