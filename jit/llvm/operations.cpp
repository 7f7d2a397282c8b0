// How it works: one function for each kind of type; scalars and vectors are the same code, since IR instructions take
// both. No instruction here traps or has undefined behaviour: shift counts are masked, divisors replaced.
#include "jit/llvm/operations.hpp"

#include <llvm/IR/Intrinsics.h>

#include <cmath>

namespace kplan::jit {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

llvm::Type* like(Value* shape, llvm::Type* element) {
  if (auto* vector = llvm::dyn_cast<llvm::VectorType>(shape->getType()))
    return llvm::VectorType::get(element, vector->getElementCount());
  return element;
}
Value* integer(Value* shape, std::int64_t v) { return llvm::ConstantInt::getSigned(shape->getType(), v); }
Value* zero(Value* shape) { return llvm::Constant::getNullValue(shape->getType()); }

/// The one NaN that arithmetic gives, in place of any other: hardware's depends on the order of operands.
Value* canonical(Builder& b, Value* x) {
  return b.CreateSelect(b.CreateFCmpUNO(x, x), llvm::ConstantFP::getQNaN(x->getType()), x);
}

/// The integer that a real number is without its fraction, the nearest that there is where it is beyond them all, or 0
/// where it is no number.
Value* saturated(Builder& b, Value* v, Scalar from, Scalar to) {
  llvm::Type* const target = like(v, register_type(b.getContext(), to));
  const auto bits = static_cast<int>(8 * size_of(to));
  const bool has_all = bits <= (from == Scalar::f64 ? 32 : 16), fits_in_i32 = bits < 32 || is_signed_integer(to);
  if (!has_all || !fits_in_i32) {
    const auto id = is_signed_integer(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(id, {target, v->getType()}, {v});
  }
  // Vectors of these intrinsics are taken apart; clamped first, as what `from` has exactly, they are not.
  const int digits = is_signed_integer(to) ? bits - 1 : bits;
  Value* const most = llvm::ConstantFP::get(v->getType(), std::ldexp(1.0, digits) - 1);
  Value* const least = llvm::ConstantFP::get(v->getType(), is_signed_integer(to) ? -std::ldexp(1.0, digits) : 0.0);
  v = b.CreateSelect(b.CreateFCmpUNO(v, v), zero(v), v);
  v = b.CreateSelect(b.CreateFCmpOGT(v, least), v, least);
  v = b.CreateSelect(b.CreateFCmpOLT(v, most), v, most);
  return b.CreateIntCast(b.CreateFPToSI(v, like(v, b.getInt32Ty())), target, /*isSigned=*/true);
}

Value* convert_part(Builder& b, Value* v, Scalar from, Scalar to) {
  llvm::Type* target = like(v, register_type(b.getContext(), to));
  if (from == to) return v;
  if (to == Scalar::boolean) return is_real(from) ? b.CreateFCmpUNE(v, zero(v)) : b.CreateICmpNE(v, zero(v));
  if (is_real(from) && is_real(to)) {
    Value* out = b.CreateFPCast(v, target);
    return size_of(to) < size_of(from) ? canonical(b, out) : out;
  }
  if (is_real(from)) return saturated(b, v, from, to);
  const bool is_signed = is_signed_integer(from);
  if (is_real(to)) return is_signed ? b.CreateSIToFP(v, target) : b.CreateUIToFP(v, target);
  return b.CreateIntCast(v, target, is_signed);
}

Lanes convert(Builder& b, Lanes v, Scalar from, Scalar to) {
  const Scalar from_part = part_of(from), to_part = part_of(to);
  if (to == Scalar::boolean && is_complex(from)) {
    return {b.CreateOr(convert_part(b, v.real, from_part, to), convert_part(b, v.imaginary, from_part, to)), nullptr};
  }
  Lanes out{convert_part(b, v.real, from_part, to_part), nullptr};
  if (is_complex(to))
    out.imaginary = is_complex(from) ? convert_part(b, v.imaginary, from_part, to_part) : zero(out.real);
  return out;
}

/// Floor division and its remainder; where the divisor is zero both are 0.
struct Divided {
  Value* quotient;
  Value* remainder;
};

Divided divide(Builder& b, Value* x, Value* y, bool is_signed, Value*& is_zero) {
  is_zero = b.CreateICmpEQ(y, zero(y));
  if (!is_signed) {
    Value* divisor = b.CreateSelect(is_zero, integer(y, 1), y);
    return {b.CreateSelect(is_zero, zero(x), b.CreateUDiv(x, divisor)),
            b.CreateSelect(is_zero, zero(x), b.CreateURem(x, divisor))};
  }
  // Division by -1 is negation: the machine's instruction traps for the smallest number.
  Value* is_minus_one = b.CreateICmpEQ(y, integer(y, -1));
  Value* divisor = b.CreateSelect(b.CreateOr(is_zero, is_minus_one), integer(y, 1), y);
  Value* quotient = b.CreateSDiv(x, divisor);
  Value* remainder = b.CreateSRem(x, divisor);
  Value* below =
      b.CreateAnd(b.CreateICmpNE(remainder, zero(x)), b.CreateICmpSLT(b.CreateXor(remainder, divisor), zero(x)));
  quotient = b.CreateSelect(below, b.CreateSub(quotient, integer(x, 1)), quotient);
  remainder = b.CreateSelect(below, b.CreateAdd(remainder, divisor), remainder);
  quotient = b.CreateSelect(is_minus_one, b.CreateNeg(x), quotient);
  return {b.CreateSelect(is_zero, zero(x), quotient),
          b.CreateSelect(b.CreateOr(is_zero, is_minus_one), zero(x), remainder)};
}

Value* shift_count(Builder& b, Value* y) { return b.CreateAnd(y, integer(y, y->getType()->getScalarSizeInBits() - 1)); }

Value* integer_operation(Builder& b, Operation op, Value* x, Value* y, bool is_signed, Value*& is_zero) {
  const int width = static_cast<int>(x->getType()->getScalarSizeInBits());
  switch (op) {
    case Operation::neg: return b.CreateNeg(x);
    case Operation::bit_not: return b.CreateNot(x);
    case Operation::add: return b.CreateAdd(x, y);
    case Operation::sub: return b.CreateSub(x, y);
    case Operation::mul: return b.CreateMul(x, y);
    case Operation::div: return divide(b, x, y, is_signed, is_zero).quotient;
    case Operation::mod: return divide(b, x, y, is_signed, is_zero).remainder;
    case Operation::ceil_div: {
      const Divided d = divide(b, x, y, is_signed, is_zero);
      return b.CreateAdd(d.quotient, b.CreateZExt(b.CreateICmpNE(d.remainder, zero(x)), x->getType()));
    }
    case Operation::bit_and: return b.CreateAnd(x, y);
    case Operation::bit_or: return b.CreateOr(x, y);
    case Operation::bit_xor: return b.CreateXor(x, y);
    case Operation::shl: return b.CreateShl(x, shift_count(b, y));
    case Operation::shr: return is_signed ? b.CreateAShr(x, shift_count(b, y)) : b.CreateLShr(x, shift_count(b, y));
    case Operation::abs: return is_signed ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse()) : x;
    case Operation::log2: {
      Value* below = is_signed ? b.CreateICmpSLT(x, integer(x, 1)) : b.CreateICmpEQ(x, zero(x));
      Value* zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, b.getFalse());
      return b.CreateSelect(below, integer(x, -1), b.CreateSub(integer(x, width - 1), zeros));
    }
    case Operation::pow2: {
      Value* fits = b.CreateICmpULT(x, integer(x, is_signed ? width - 1 : width));
      Value* count = b.CreateSelect(fits, x, zero(x));
      return b.CreateSelect(fits, b.CreateShl(integer(x, 1), count), zero(x));
    }
    case Operation::popcount: return b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x);
    default: return zero(x);
  }
}

Value* real_operation(Builder& b, Operation op, Value* x, Value* y) {
  switch (op) {
    case Operation::neg: return b.CreateFNeg(x);
    case Operation::add: return canonical(b, b.CreateFAdd(x, y));
    case Operation::sub: return canonical(b, b.CreateFSub(x, y));
    case Operation::mul: return canonical(b, b.CreateFMul(x, y));
    case Operation::div: return canonical(b, b.CreateFDiv(x, y));
    case Operation::abs: return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    case Operation::sqrt: return canonical(b, b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    default: return zero(x);
  }
}

Lanes complex_operation(Builder& b, Operation op, Lanes x, Lanes y) {
  auto cross = [&](Value* p, Value* q, Value* r, Value* s, bool minus) {
    Value* left = b.CreateFMul(p, q);
    Value* right = b.CreateFMul(r, s);
    return minus ? b.CreateFSub(left, right) : b.CreateFAdd(left, right);
  };
  auto both = [&](Value* real, Value* imaginary) { return Lanes{canonical(b, real), canonical(b, imaginary)}; };
  switch (op) {
    case Operation::neg: return {b.CreateFNeg(x.real), b.CreateFNeg(x.imaginary)};
    case Operation::add: return both(b.CreateFAdd(x.real, y.real), b.CreateFAdd(x.imaginary, y.imaginary));
    case Operation::sub: return both(b.CreateFSub(x.real, y.real), b.CreateFSub(x.imaginary, y.imaginary));
    case Operation::mul:
      return both(cross(x.real, y.real, x.imaginary, y.imaginary, true),
                  cross(x.real, y.imaginary, x.imaginary, y.real, false));
    default: {
      Value* norm = cross(y.real, y.real, y.imaginary, y.imaginary, false);
      Value* real = cross(x.real, y.real, x.imaginary, y.imaginary, false);
      Value* imaginary = cross(x.imaginary, y.real, x.real, y.imaginary, true);
      return both(b.CreateFDiv(real, norm), b.CreateFDiv(imaginary, norm));
    }
  }
}

Value* compare(Builder& b, Operation op, Scalar type, Value* x, Value* y) {
  using P = llvm::CmpInst::Predicate;
  static constexpr P reals[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
  static constexpr P signeds[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  static constexpr P unsigneds[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  const auto at = static_cast<std::size_t>(op) - static_cast<std::size_t>(Operation::eq);
  if (is_real(type)) return b.CreateFCmp(reals[at], x, y);
  return b.CreateICmp(is_signed_integer(type) ? signeds[at] : unsigneds[at], x, y);
}

Value* boolean_operation(Builder& b, Operation op, Value* x, Value* y) {
  switch (op) {
    case Operation::bit_and: return b.CreateAnd(x, y);
    case Operation::bit_or: return b.CreateOr(x, y);
    case Operation::bit_xor: return b.CreateXor(x, y);
    default: return b.CreateNot(x);
  }
}

}  // namespace

llvm::Type* register_type(llvm::LLVMContext& context, Scalar type) {
  if (type == Scalar::boolean) return llvm::Type::getInt1Ty(context);
  return memory_type(context, type);
}

llvm::Type* memory_type(llvm::LLVMContext& context, Scalar type) {
  const Scalar part = part_of(type);
  if (part == Scalar::f32) return llvm::Type::getFloatTy(context);
  if (part == Scalar::f64) return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(8 * size_of(type)));
}

Lanes emit_operation(llvm::IRBuilder<>& b, Operation op, Scalar operand_type, Scalar result_type, Lanes x, Lanes y,
                     Lanes z, llvm::Value*& is_zero) {
  is_zero = nullptr;
  if (op == Operation::convert) return convert(b, x, operand_type, result_type);
  if (op == Operation::select) {
    return {b.CreateSelect(x.real, y.real, z.real),
            y.imaginary ? b.CreateSelect(x.real, y.imaginary, z.imaginary) : nullptr};
  }
  if (is_comparison(op) && is_complex(operand_type)) {
    Value* real = compare(b, op, part_of(operand_type), x.real, y.real);
    Value* imaginary = compare(b, op, part_of(operand_type), x.imaginary, y.imaginary);
    return {op == Operation::eq ? b.CreateAnd(real, imaginary) : b.CreateOr(real, imaginary), nullptr};
  }
  if (is_comparison(op)) return {compare(b, op, operand_type, x.real, y.real), nullptr};
  if (op == Operation::min)
    return {b.CreateSelect(compare(b, Operation::lt, operand_type, y.real, x.real), y.real, x.real), nullptr};
  if (op == Operation::max)
    return {b.CreateSelect(compare(b, Operation::lt, operand_type, x.real, y.real), y.real, x.real), nullptr};
  if (is_complex(operand_type)) return complex_operation(b, op, x, y);
  if (operand_type == Scalar::boolean) return {boolean_operation(b, op, x.real, y.real), nullptr};
  if (is_real(operand_type)) return {real_operation(b, op, x.real, y.real), nullptr};
  return {integer_operation(b, op, x.real, y.real, is_signed_integer(operand_type), is_zero), nullptr};
}

}  // namespace kplan::jit
