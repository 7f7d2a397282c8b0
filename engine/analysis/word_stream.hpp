#pragma once
// Plain data as bytes for other ranks: 64-bit words in the machine's order, lists behind their lengths, as 32-bit words
// where all fit.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/analysis/access_pattern.hpp"

namespace kplan {

class WordWriter {
 public:
  explicit WordWriter(Unfilled<std::byte>& bytes) : bytes_(bytes) {}
  void word(std::int64_t v) { words(&v, 1); }
  void list(std::span<const std::int64_t> v);
  void piece(const Piece& piece);

 private:
  void words(const std::int64_t* v, std::size_t count);
  Unfilled<std::byte>& bytes_;
};

/// Takes what a WordWriter wrote off the front of `bytes`. Throws TransportError KP-T012 where it is not there.
class WordReader {
 public:
  explicit WordReader(std::span<const std::byte>& bytes) : bytes_(bytes) {}
  std::int64_t word();
  /// A number of things that follow, each of at least 8 bytes.
  std::size_t count();
  Piece piece();

 private:
  template <class List>
  List list();
  void take(std::int64_t* to, std::size_t words);
  void skip(std::size_t words);
  std::span<const std::byte>& bytes_;
};

}  // namespace kplan
