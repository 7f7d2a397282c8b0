#pragma once
// Cold caches: reads a stretch of memory that is larger than the last level of cache, so that nothing of an exchange is
// left in any. In huge pages where the system has them for the asking: the more samples a second gives.

#include <cstdint>

#include "tools/bench/aligned_memory.hpp"

namespace kplan::bench {

class CacheFlush {
 public:
  explicit CacheFlush(std::size_t bytes) : memory_(bytes, huge_page) {
    for (std::uint64_t& word : memory_.as<std::uint64_t>()) word = 1;  // or all pages would be one page of zeros
  }
  void operator()() {
    std::uint64_t sum = 0;
    const auto words = memory_.as<const std::uint64_t>();
    for (std::size_t k = 0; k < words.size(); k += 8) sum += words[k];
    sink_ = sum;
  }
  std::size_t size_bytes() const { return memory_.size_bytes(); }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  AlignedMemory memory_;
  volatile std::uint64_t sink_ = 0;
};

}  // namespace kplan::bench
