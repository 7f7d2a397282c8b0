#pragma once
// The same loops as of plain hand-written code with all counts and strides constant, for the shapes of some workloads:
// what a compiler makes of a pattern that it knows.

#include "tools/bench/exchange/loops.hpp"

namespace kplan::bench {

struct ConstantLoops {
  void (*pack)(const loops::Walk&, std::byte*) = nullptr;
  void (*unpack)(const loops::Walk&, const std::byte*) = nullptr;
};

/// Null functions where there are none for this shape.
ConstantLoops constant_loops(const loops::Walk& walk, std::size_t element_bytes);

}  // namespace kplan::bench
