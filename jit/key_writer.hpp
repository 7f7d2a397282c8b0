#pragma once
// Writes a spec's key: its fields one after the other, integers as zigzag varints and every list behind its length, so
// that no two specs share a key.

#include <cstdint>
#include <string>
#include <vector>

namespace kplan::jit {

class KeyWriter {
 public:
  void unsigned_number(std::uint64_t v) {
    while (v >= 0x80) {
      bytes_.push_back(static_cast<char>(v | 0x80));
      v >>= 7;
    }
    bytes_.push_back(static_cast<char>(v));
  }
  void number(std::int64_t v) {
    unsigned_number((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
  }
  void numbers(const std::vector<std::int64_t>& list) {
    unsigned_number(list.size());
    for (std::int64_t v : list) number(v);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace kplan::jit
