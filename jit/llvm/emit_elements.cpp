// How it works: the instructions one after the other, each for all lanes, then the stores; nothing is stored before
// everything is loaded. What is the same in all lanes (constants, run-time scalars) is broadcast where it is used;
// the code generator moves it out of the loop.
#include "jit/llvm/elements.hpp"

namespace kplan::jit {
namespace {

using llvm::Value;

class Evaluation {
 public:
  Evaluation(Frame& frame, const LoopNest& nest, const Place& place, int lanes)
      : frame_(frame), nest_(nest), place_(place), lanes_(lanes), memory_(frame, nest, place, lanes) {}

  void run() {
    for (const Instruction& in : frame_.spec.instructions) values_.push_back(evaluate(in));
    if (failed_ != nullptr) frame_.fail_if(failed_, place_);
    for (const Output& out : frame_.spec.outputs) {
      const auto at = static_cast<std::size_t>(out.instruction);
      memory_.store(out.offset_bytes, frame_.spec.instructions[at].type, values_[at]);
    }
  }

 private:
  Value* spread(Value* one) {
    return lanes_ == 1 ? one : frame_.builder.CreateVectorSplat(static_cast<unsigned>(lanes_), one);
  }

  Lanes evaluate(const Instruction& in) {
    switch (in.opcode) {
      case Opcode::load: return memory_.load(static_cast<std::size_t>(in.stream), in.offset_bytes, in.type);
      case Opcode::constant: return constant(in);
      case Opcode::scalar: return scalar(in);
      case Opcode::position: return {position(in), nullptr};
      case Opcode::apply: break;
    }
    return apply(in);
  }

  Lanes constant(const Instruction& in) {
    auto& b = frame_.builder;
    auto part = [&](std::uint64_t bits) -> Value* {
      if (in.type == Scalar::boolean) return spread(b.getInt1((bits & 0xff) != 0));
      llvm::Type* type = memory_type(b.getContext(), in.type);
      const llvm::APInt integer = llvm::APInt(64, bits).trunc(type->getScalarSizeInBits());
      if (type->isIntegerTy()) return spread(llvm::ConstantInt::get(type, integer));
      return spread(llvm::ConstantFP::get(type, llvm::APFloat(type->getFltSemantics(), integer)));
    };
    if (!is_complex(in.type)) return {part(in.bits[0]), nullptr};
    return {part(in.bits[0]), part(in.type == Scalar::c64 ? in.bits[0] >> 32 : in.bits[1])};
  }

  Lanes scalar(const Instruction& in) {
    auto& b = frame_.builder;
    llvm::Type* type = memory_type(b.getContext(), in.type);
    Value* first = frame_.scalar(in.slot, 0, type);
    if (in.type == Scalar::boolean) first = b.CreateICmpNE(first, b.getInt8(0));
    if (!is_complex(in.type)) return {spread(first), nullptr};
    return {spread(first), spread(frame_.scalar(in.slot, static_cast<std::int64_t>(size_of(part_of(in.type))), type))};
  }

  Value* position(const Instruction& in) {
    auto& b = frame_.builder;
    Value* sum = in.slot >= 0 ? frame_.scalar(in.slot, 0, b.getInt64Ty()) : frame_.number(0);
    for (std::size_t d = 0; d < in.position_strides.size(); ++d) {
      if (in.position_strides[d] == 0) continue;
      sum = b.CreateAdd(sum, b.CreateMul(place_.position(static_cast<int>(d)), frame_.number(in.position_strides[d])));
    }
    if (lanes_ == 1) return sum;
    std::vector<std::uint64_t> steps;
    const int inner = nest_.inner->dimension;
    const std::int64_t step = inner == list_dimension ? 0 : in.position_strides[static_cast<std::size_t>(inner)];
    for (int lane = 0; lane < lanes_; ++lane)
      steps.push_back(static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(lane));
    return b.CreateAdd(spread(sum), llvm::ConstantDataVector::get(b.getContext(), steps));
  }

  Lanes apply(const Instruction& in) {
    auto& b = frame_.builder;
    auto operand = [&](std::int32_t i) { return i < 0 ? Lanes{} : values_[static_cast<std::size_t>(i)]; };
    const Scalar operand_type = frame_.spec.instructions[static_cast<std::size_t>(in.a)].type;
    Value* is_zero = nullptr;
    const Lanes result =
        emit_operation(b, in.operation, operand_type, in.type, operand(in.a), operand(in.b), operand(in.c), is_zero);
    if (is_zero != nullptr) {
      if (in.guard >= 0) is_zero = b.CreateAnd(is_zero, operand(in.guard).real);
      failed_ = failed_ == nullptr ? is_zero : b.CreateOr(failed_, is_zero);
    }
    return result;
  }

  Frame& frame_;
  const LoopNest& nest_;
  const Place& place_;
  int lanes_;
  Memory memory_;
  std::vector<Lanes> values_;
  Value* failed_ = nullptr;
};

}  // namespace

void emit_elements(Frame& frame, const LoopNest& nest, const Place& place, int lanes) {
  Evaluation(frame, nest, place, lanes).run();
}

}  // namespace kplan::jit
