#pragma once
// Emits a RowSpec as an LLVM function.

#include "jit/row_spec.hpp"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace kplan::jit {

/// Adds the rows' function, a RowFunction, to the module; its name is the spec's, made a symbol and unique.
llvm::Function* emit_rows(llvm::Module& module, const RowSpec& spec);

}  // namespace kplan::jit
