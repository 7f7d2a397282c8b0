#pragma once
// Emits a kernel as an LLVM function.

#include "jit/kernel_spec.hpp"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace kplan::jit {

/// Adds the kernel's function to the module, for vectors of so many bytes; its name is the spec's, made a symbol and
/// unique.
llvm::Function* emit_kernel(llvm::Module& module, const KernelSpec& spec, int vector_bytes);

}  // namespace kplan::jit
