#pragma once
// Faces of arrays of any shape: every rank sends its first and last `width` layers along one dimension to the ranks
// before and after it, in a ring, all arrays in one exchange.

#include "tools/bench/exchange/exchange.hpp"

namespace kplan::bench {

struct FaceArray {
  Array array;                               ///< with layers for the ghosts along `split`
  std::size_t split = 0;                     ///< the dimension
  std::int64_t width = 1;                    ///< layers
  std::vector<std::int64_t> starts, counts;  ///< of what is exchanged in the other dimensions; empty: all
};

Exchange face_exchange(const Team& team, const std::vector<FaceArray>& arrays);

/// The same with ghosts sent to whom they came from and added to the layers there: what an assembly does.
Exchange transposed_face_sum(const Team& team, const std::vector<FaceArray>& arrays);

}  // namespace kplan::bench
