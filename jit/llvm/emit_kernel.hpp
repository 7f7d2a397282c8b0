#pragma once
// Emits a kernel as an LLVM function.

#include "jit/kernel_spec.hpp"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace kplan::jit {

/// What code is made for, beyond what the code generator knows.
struct HostTraits {
  int vector_bytes = 16;               ///< of the widest vectors that are worth using: 16, 32 or 64
  std::int64_t past_caches_bytes = 0;  ///< transpositions of so many are better written past the caches; 0: none are
};

/// Adds the kernel's function to the module; its name is the spec's, made a symbol and unique.
llvm::Function* emit_kernel(llvm::Module& module, const KernelSpec& spec, const HostTraits& host);

}  // namespace kplan::jit
