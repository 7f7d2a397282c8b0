#pragma once
// Random expressions as plans have them, and the data that they read.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kplan/engine.hpp"
#include "tests/engine/dice.hpp"

namespace kplan::test {

/// Of where-bound variables i and j and the data below; some overflow, or are outside their buffers.
class RandomExpression : Dice {
 public:
  explicit RandomExpression(std::mt19937_64& random) : Dice(random) {}

  std::string integer(int depth) {
    switch (depth == 0 ? between(0, 4) : between(0, 14)) {
      case 0: return "i";
      case 1: return "j";
      case 2: return "n";
      case 3: return chance(50) ? "rank" : "size";
      case 4: return std::to_string(between(0, 9));
      case 5: return fmt::format("({} ? {} : {})", boolean(depth - 1), integer(depth - 1), integer(depth - 1));
      case 6: return fmt::format("i64({}[{}])", one_of<std::string>({"bytes", "words"}), index(depth - 1));
      case 7: return fmt::format("i64(pairs[{}, {} % 3])", index(depth - 1), index(depth - 1));
      case 8: return fmt::format("i64({}({}))", one_of<std::string>({"i8", "u16", "i32"}), integer(depth - 1));
      case 9:
        return fmt::format("{}({}, {})", one_of<std::string>({"min", "max"}), integer(depth - 1), integer(depth - 1));
      case 10: return fmt::format("({} {} (n + {}))", integer(depth - 1), chance(50) ? "/" : "%", integer(depth - 1));
      case 11:
        return fmt::format("({} {} {})", integer(depth - 1), one_of<std::string>({"&", "|", "^"}), integer(depth - 1));
      case 12:
        return fmt::format("{}({}, {})", chance(70) ? "shr" : "shl", integer(depth - 1),
                           one_of<std::string>({"i", "n", "62 + i", integer(depth - 1)}));
      default:
        return fmt::format("({} {} {})", integer(depth - 1), one_of<std::string>({"+", "-", "*"}), integer(depth - 1));
    }
  }
  std::string index(int depth) { return chance(85) ? fmt::format("({}) % 8", integer(depth)) : integer(depth); }
  std::string boolean(int depth) {
    if (depth > 0 && chance(30))
      return fmt::format("({} {} {})", boolean(depth - 1), chance(50) ? "&&" : "||", boolean(depth - 1));
    if (chance(15)) return fmt::format("!({} < {})", integer(0), integer(0));
    return fmt::format("({} {} {})", integer(std::max(0, depth - 1)),
                       one_of<std::string>({"<", "<=", "==", "!=", ">", ">="}), integer(std::max(0, depth - 1)));
  }
  /// Of an array of 8 x 9 elements.
  std::string reference() {
    const std::string row = chance(80) ? index(1) : "0";
    switch (between(0, 3)) {
      case 0: return fmt::format("[{}, {}]", row, index(1));
      case 1: return fmt::format("[{}, :]", row);
      case 2: return fmt::format("[{}, {}:]", row, index(1));
      default: return fmt::format("[{}, {}:9 - {}]", row, index(0), index(0));
    }
  }
};

/// The buffers and parameters that random expressions name, and others to send between.
inline void add_data(PlanBuilder& builder) {
  builder.parameter("n", Scalar::i64).buffer("x", Scalar::f64, {"8", "9"}).buffer("y", Scalar::f64, {"9"});
  builder.index_buffer("bytes", Scalar::i8, {"8"}, Scope::private_, Time::fixed);
  builder.index_buffer("words", Scalar::u32, {"8"}, Scope::private_, Time::fixed);
  builder.index_buffer("pairs", Scalar::i64, {"8", "3"}, Scope::private_, Time::fixed);
}

inline Values values_of(std::mt19937_64& random) {
  std::vector<std::int8_t> bytes(8);
  std::vector<std::uint32_t> words(8);
  std::vector<std::int64_t> pairs(24);
  for (auto& v : bytes) v = static_cast<std::int8_t>(random());
  for (auto& v : words) v = static_cast<std::uint32_t>(random() % 20);
  for (auto& v : pairs) v = static_cast<std::int64_t>(random() % 1000) - 500;
  pairs[5] = INT64_MAX;
  return {{"n", static_cast<std::int64_t>(random() % 12)}, {"bytes", bytes}, {"words", words}, {"pairs", pairs}};
}

}  // namespace kplan::test
