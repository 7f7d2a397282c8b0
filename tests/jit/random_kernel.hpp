#pragma once
// Random kernels: specs of every shape, with memory, lists and run-time values to run them on.

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "guarded_memory.hpp"
#include "jit/kernel_spec.hpp"

namespace kplan::test {

/// A spec and the numbers to call it with.
struct RandomKernel {
  jit::KernelSpec spec;
  std::vector<std::int64_t> extents;  ///< by dimension, literal ones too
  std::vector<std::int64_t> strides;  ///< stream-major, literal ones too
  std::vector<std::vector<jit::ListEntry>> lists;
  std::int64_t list_length = 0;
  std::vector<std::uint64_t> scalars;
  std::vector<std::int64_t> first, last;  ///< by stream: the lowest offset touched, and one beyond the highest
  std::uint32_t seed = 0;                 ///< of the memory's contents
};

RandomKernel random_kernel(std::mt19937_64& random);

/// Three streams' memory, used for one kernel after the other.
class Arena {
 public:
  static constexpr std::size_t bytes = 1 << 18;
  Arena();
  /// Fills the streams' memory with the kernel's random contents and points the arguments at it.
  jit::KernelArguments prepare(const RandomKernel& kernel);
  /// What the target holds.
  std::vector<std::byte> target(const RandomKernel& kernel);

 private:
  std::vector<std::unique_ptr<GuardedMemory>> memories_;
  std::vector<std::byte*> bases_;
  std::vector<const jit::ListEntry*> lists_;
};

/// Calls f with the offset of every iteration's element in the stream, list included, in the nest's order.
template <class F>
void for_each_offset(const RandomKernel& k, std::size_t stream, F f) {
  const std::size_t rank = k.extents.size();
  const std::int64_t outer = k.spec.has_lists() ? k.list_length : 1;
  std::vector<std::int64_t> at(rank, 0);
  for (std::int64_t e : k.extents) {
    if (e <= 0) return;
  }
  for (std::int64_t o = 0; o < outer; ++o) {
    bool more = true;
    while (more) {
      std::int64_t offset = o * k.spec.streams[stream].list_stride_bytes;
      if (k.spec.streams[stream].is_indexed)
        offset += k.spec.streams[stream].list_scale_bytes * k.lists[stream][static_cast<std::size_t>(o)];
      for (std::size_t d = 0; d < rank; ++d) offset += at[d] * k.strides[stream * rank + d];
      f(offset);
      more = false;
      for (std::size_t d = rank; d-- > 0 && !more;) {
        if (++at[d] < k.extents[d]) more = true;
        else at[d] = 0;
      }
    }
  }
}

}  // namespace kplan::test
