#pragma once
// Values of kernels in LLVM IR, one element or a vector of lanes, and every operation on them.

#include <llvm/IR/IRBuilder.h>

#include "plans/arithmetic.hpp"

namespace kplan::jit {

/// A value in one or more lanes. Complex numbers are two parts; `imaginary` is null for all others. Booleans are i1.
struct Lanes {
  llvm::Value* real = nullptr;
  llvm::Value* imaginary = nullptr;
};

/// The IR type of a scalar, or of a complex number's part, in a register.
llvm::Type* register_type(llvm::LLVMContext& context, Scalar type);
/// The same in memory: booleans take a byte.
llvm::Type* memory_type(llvm::LLVMContext& context, Scalar type);

/// Applies an operation, bit for bit as plans/arithmetic.hpp does (NaNs' payloads aside). For integer divisions
/// `is_zero` receives where the divisor is zero; the value there is 0, and nothing traps.
Lanes emit_operation(llvm::IRBuilder<>& builder, Operation op, Scalar operand_type, Scalar result_type, Lanes a,
                     Lanes b, Lanes c, llvm::Value*& is_zero);

}  // namespace kplan::jit
