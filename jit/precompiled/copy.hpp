#pragma once
// Plain copies of elements, precompiled by element size.

#include "jit/kernel_spec.hpp"

namespace kplan::jit {

/// Runs a spec with `copy_bytes`. Allocates nothing.
void run_copy(const KernelSpec& spec, const KernelArguments& arguments);

}  // namespace kplan::jit
