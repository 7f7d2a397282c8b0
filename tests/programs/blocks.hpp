#pragma once
// How the programs distribute things: n items numbered from 0, in as many blocks as there are ranks, in order. Where n
// does not divide, some blocks have one item more than others; where there are more ranks than items, some have none.

#include <cstdint>

namespace kplan::programs {

struct Blocks {
  std::int64_t item_count = 0;
  int ranks = 1;

  std::int64_t first(int rank) const { return item_count * rank / ranks; }
  std::int64_t count(int rank) const { return first(rank + 1) - first(rank); }
  int owner(std::int64_t item) const { return static_cast<int>(((item + 1) * ranks - 1) / item_count); }
};

}  // namespace kplan::programs
