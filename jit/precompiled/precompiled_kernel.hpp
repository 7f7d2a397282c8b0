#pragma once
// A kernel at hand at once: runs any spec through code that was compiled with the library.

#include <optional>

#include "jit/precompiled/block_program.hpp"

namespace kplan::jit {

/// The precompiled form of a spec. Same bits as `interpret`. Thread-safe.
class PrecompiledKernel {
 public:
  /// Keeps a reference to the spec. Cost: microseconds.
  explicit PrecompiledKernel(const KernelSpec& spec);

  /// Returns what `KernelFunction` returns. Allocates nothing, but for specs of more than some 60 streams or 2 KiB of
  /// values at a time, which are interpreted. Needs 64 KiB of stack.
  std::uint64_t operator()(const KernelArguments& arguments) const;

 private:
  const KernelSpec& spec_;
  std::optional<BlockProgram> program_;
};

}  // namespace kplan::jit
