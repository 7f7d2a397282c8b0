#pragma once
// The same loops as of plain hand-written code with all counts and strides constant, for the workloads of `kernels`:
// what a compiler makes of a pattern that it knows.

#include <string>
#include <vector>

#include "tools/bench/exchange/packer.hpp"

namespace kplan::bench {

/// The loops of one workload.
class ConstantLoops {
 public:
  explicit ConstantLoops(std::string workload);

  /// Null functions where the workload has none for this shape.
  Loops find(const loops::Walk& walk, Scalar wire, Scalar place, Combine combine);
  /// Call when all was looked up: throws std::runtime_error where the workload has loops that were never found.
  void require_all_found() const;

 private:
  std::string workload_;
  std::vector<std::size_t> left_;  ///< numbers of entries that were not found yet
};

}  // namespace kplan::bench
