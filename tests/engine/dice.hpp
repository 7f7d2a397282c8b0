#pragma once
// What random plans are drawn with.

#include <random>
#include <vector>

namespace kplan::test {

class Dice {
 protected:
  explicit Dice(std::mt19937_64& random) : random_(random) {}

  int between(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<int>(list.size()) - 1))];
  }

  std::mt19937_64& random_;
};

}  // namespace kplan::test
