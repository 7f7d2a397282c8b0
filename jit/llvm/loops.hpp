#pragma once
// Which loops a kernel gets: the spec's nest, with dimensions fused, reordered and unrolled where its meaning allows,
// and one loop chosen to run in vector lanes. Knows nothing of LLVM.

#include <optional>
#include <vector>

#include "jit/kernel_spec.hpp"

namespace kplan::jit {

inline constexpr int list_dimension = -1;

/// `factor`, times the run-time extent of a dimension (or the lists' length) if there is one.
struct Count {
  std::int64_t factor = 1;
  bool is_run_time = false;
  int dimension = 0;  ///< whose run-time extent; `list_dimension` for the lists' length
};

/// One loop; its strides are those of `dimension` in the spec, the innermost of the dimensions fused into it.
struct Loop {
  int dimension = 0;
  Count count;
};

/// How the elements of a stream lie along one loop.
enum class Spread { unit, same, near, apart };

struct LoopNest {
  std::vector<Loop> outer;     ///< outermost first
  std::optional<Loop> inner;   ///< the loop whose iterations are the lanes; none: a single iteration
  std::vector<Loop> unrolled;  ///< short literal loops inside the lanes
  std::vector<Loop> tile;      ///< two loops of a transposition, source's contiguous one first; else empty
  int lanes = 1;               ///< elements in a vector; a power of two
  int repeats = 1;             ///< vectors in one turn of the inner loop; a power of two
  Count copy;                  ///< copies: bytes of one contiguous run
};

/// Chooses the loops for vectors of so many bytes.
LoopNest choose_loops(const KernelSpec& spec, int vector_bytes);

/// Bytes between a stream's elements along a loop: a literal or `at_run_time` (indexed streams along the list too).
std::int64_t stride_along(const KernelSpec& spec, std::size_t stream, int dimension);

/// How elements of `bytes` with that stride are reached.
Spread spread_of(std::int64_t stride, std::int64_t bytes);

}  // namespace kplan::jit
