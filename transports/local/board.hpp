#pragma once
// What the ranks of one sparse exchange object share: for each rank the letters that others have posted to it and those
// of its own that come back, and how many exchanges it has posted.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "transports/letter.hpp"

namespace kplan::transport::local_backend {

inline constexpr std::size_t cache_line = 64;

/// Letters that any thread may lay down and one thread takes away, all at once. Without locks.
class LetterStack {
 public:
  LetterStack() = default;
  ~LetterStack() { (void)take_all(); }
  LetterStack(const LetterStack&) = delete;
  LetterStack& operator=(const LetterStack&) = delete;

  void push(LetterPtr letter) noexcept;
  /// In the order in which they were pushed.
  LetterList take_all() noexcept;

 private:
  std::atomic<Letter*> top_{nullptr};
};

struct Board {
  struct Place {
    alignas(cache_line) LetterStack inbox;
    alignas(cache_line) LetterStack returned;
    std::atomic<std::uint64_t> posted;  ///< number of its next exchange: all letters of those before are in the inboxes
  };

  /// `first_number` is that of the first exchange whose receivers do not know their sources; 0 but in tests.
  explicit Board(int ranks, std::uint64_t first_number = 0);

  std::uint64_t first_number;
  std::vector<Place> places;                                        ///< by rank
  alignas(cache_line) std::atomic<std::uint64_t> posted_in_all{0};  ///< how often ranks have posted an exchange
};

}  // namespace kplan::transport::local_backend
