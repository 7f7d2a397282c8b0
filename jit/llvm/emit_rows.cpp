// How it works: a loop is emitted around all that follows it. What changes from turn to turn besides the loops'
// counters, the numbers of rows and of turns, is carried as values from block to block: `State`.
#include "jit/llvm/emit_rows.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <cstddef>
#include <map>
#include <span>

#include "jit/llvm/symbol_name.hpp"

namespace kplan::jit {
namespace {

using llvm::BasicBlock;
using llvm::Value;

class RowEmitter {
 public:
  RowEmitter(llvm::Module& module, const RowSpec& spec)
      : spec_(spec),
        innermost_(spec.innermost_loop()),
        builder_(module.getContext()),
        entry_(module.getContext()),
        values_(spec.first_value_of(spec.parts.size())) {
    auto* type = llvm::FunctionType::get(builder_.getInt64Ty(), {builder_.getPtrTy()}, false);
    function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                       symbol_name(module, spec.name.empty() ? "rows" : spec.name), module);
    function_->setDoesNotThrow();
    auto* const entry = block("entry");
    auto* const body = block("body");
    entry_.SetInsertPoint(llvm::BranchInst::Create(body, entry));
    builder_.SetInsertPoint(body);
    left_ = block("left");
    llvm::ReturnInst::Create(module.getContext(), number(rows_left), left_);
    full_ = block("out_of_room");
    llvm::ReturnInst::Create(module.getContext(), number(rows_out_of_room), full_);
  }

  llvm::Function* emit() {
    const State end = turn(0, State(spec_.parts.size() + 1, number(0)));
    for (std::size_t p = 0; p < spec_.parts.size(); ++p)
      builder_.CreateAlignedStore(end[p], element(field(offsetof(RowArguments, rows)), p), llvm::Align(8));
    builder_.CreateRet(number(rows_done));
    return function_;
  }

 private:
  /// The numbers of rows by part, then of turns.
  using State = std::vector<Value*>;

  BasicBlock* block(const char* name) { return BasicBlock::Create(builder_.getContext(), name, function_); }
  Value* number(std::int64_t v) { return builder_.getInt64(static_cast<std::uint64_t>(v)); }

  Value* load(Value* at, llvm::Type* type) { return entry_.CreateAlignedLoad(type, at, llvm::Align(8)); }
  /// Element n of an array of words.
  Value* element(Value* array, std::size_t n) { return builder_.CreateConstGEP1_64(builder_.getInt64Ty(), array, n); }
  /// A pointer of the arguments.
  Value* field(std::size_t at) {
    Value*& out = fields_[at];
    if (!out) out = load(entry_.CreateConstGEP1_64(entry_.getInt8Ty(), function_->getArg(0), at), entry_.getPtrTy());
    return out;
  }
  /// Word n of an array of the arguments.
  Value* argument(std::size_t at, std::size_t n, llvm::Type* type) {
    Value*& out = arguments_[{at, n}];
    if (!out) out = load(entry_.CreateConstGEP1_64(entry_.getInt64Ty(), field(at), n), type);
    return out;
  }
  Value* most_turns() {
    Value*& out = arguments_[{offsetof(RowArguments, most_turns), 0}];
    if (!out)
      out =
          load(entry_.CreateConstGEP1_64(entry_.getInt8Ty(), function_->getArg(0), offsetof(RowArguments, most_turns)),
               entry_.getInt64Ty());
    return out;
  }
  Value* value_of(const RowOperand& operand) {
    const auto n = static_cast<std::size_t>(operand.number);
    switch (operand.kind) {
      case RowOperand::Kind::literal: return number(operand.number);
      case RowOperand::Kind::scalar: return argument(offsetof(RowArguments, scalars), n, builder_.getInt64Ty());
      default: return values_[n];
    }
  }

  /// Goes to `to` where the condition holds, which is seldom.
  void seldom(Value* condition, BasicBlock* to) {
    auto* const otherwise = block("on");
    builder_.CreateCondBr(condition, to, otherwise,
                          llvm::MDBuilder(builder_.getContext()).createUnlikelyBranchWeights());
    builder_.SetInsertPoint(otherwise);
  }

  /// One state from two ways into the current block, which is new.
  State joined(const State& a, BasicBlock* from_a, const State& b, BasicBlock* from_b) {
    State out = a;
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (a[k] == b[k]) continue;
      auto* const phi = builder_.CreatePHI(builder_.getInt64Ty(), 2);
      phi->addIncoming(a[k], from_a);
      phi->addIncoming(b[k], from_b);
      out[k] = phi;
    }
    return out;
  }

  /// What follows, where the filter passes; else its end.
  template <class F>
  State filtered(const RowStep& step, const State& state, const F& then) {
    auto* const passes = block("passes");
    auto* const join = block("join");
    auto* const from = builder_.GetInsertBlock();
    builder_.CreateCondBr(builder_.CreateICmpNE(value_of(step.a), number(0)), passes, join);
    builder_.SetInsertPoint(passes);
    const State end = then();
    auto* const last = builder_.GetInsertBlock();
    builder_.CreateBr(join);
    builder_.SetInsertPoint(join);
    return joined(state, from, end, last);
  }

  /// From step number `at` on to the end of the turn.
  State turn(std::size_t at, State state) {
    for (; at < spec_.steps.size(); ++at) {
      const RowStep& step = spec_.steps[at];
      if (step.opcode == RowOpcode::filter) return filtered(step, state, [&] { return turn(at + 1, state); });
      if (step.opcode == RowOpcode::range) return loop(at, state);
      add(step, at);
    }
    return rows(/*are_outside=*/false, state);
  }

  /// A row of each part.
  State rows(bool are_outside, State state) {
    for (std::size_t p = 0; p < spec_.parts.size(); ++p)
      if (spec_.parts[p].is_outside == are_outside) state = row(p, 0, state);
    return state;
  }

  State loop(std::size_t at, const State& before) {
    const RowStep& step = spec_.steps[at];
    Value *const first = value_of(step.a), *const end = value_of(step.b), *const by = value_of(step.c);
    const bool is_by_one = step.c == RowOperand::literal(1);
    if (!is_by_one) seldom(builder_.CreateICmpSLT(by, number(1)), left_);
    auto* const enters = block("enters");
    auto* const head = block("turn");
    auto* const after = block("after");
    auto* const from = builder_.GetInsertBlock();
    builder_.CreateCondBr(builder_.CreateICmpSLT(first, end), enters, after);

    builder_.SetInsertPoint(enters);
    Value* trips = checked(llvm::Intrinsic::ssub_with_overflow, end, first);
    if (!is_by_one)
      trips = builder_.CreateAdd(builder_.CreateUDiv(builder_.CreateSub(trips, number(1)), by), number(1));
    State now = before;
    now.back() = checked(llvm::Intrinsic::sadd_with_overflow, before.back(), trips);
    seldom(builder_.CreateICmpSGT(now.back(), most_turns()), left_);
    if (at == innermost_) now = rows(/*are_outside=*/true, now);
    auto* const entered = builder_.GetInsertBlock();
    builder_.CreateBr(head);

    builder_.SetInsertPoint(head);
    std::vector<llvm::PHINode*> carried;
    auto* const counter = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    auto* const left = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    counter->addIncoming(first, entered);
    left->addIncoming(trips, entered);
    for (Value*& v : now) {
      carried.push_back(builder_.CreatePHI(builder_.getInt64Ty(), 2));
      carried.back()->addIncoming(v, entered);
      v = carried.back();
    }
    values_[at] = counter;
    const State done = turn(at + 1, now);
    auto* const latch = builder_.GetInsertBlock();
    Value* const fewer = builder_.CreateSub(left, number(1));
    counter->addIncoming(builder_.CreateAdd(counter, by), latch);
    left->addIncoming(fewer, latch);
    for (std::size_t k = 0; k < carried.size(); ++k) carried[k]->addIncoming(done[k], latch);
    builder_.CreateCondBr(builder_.CreateICmpNE(fewer, number(0)), head, after);

    builder_.SetInsertPoint(after);
    return joined(before, from, done, latch);
  }

  /// The rest of a part, from its step number `at` on.
  State row(std::size_t p, std::size_t at, State state) {
    const RowPart& part = spec_.parts[p];
    for (; at < part.steps.size(); ++at) {
      if (part.steps[at].opcode == RowOpcode::filter)
        return filtered(part.steps[at], state, [&] { return row(p, at + 1, state); });
      add(part.steps[at], spec_.first_value_of(p) + at);
    }
    seldom(builder_.CreateICmpSGE(state[p], argument(offsetof(RowArguments, room), p, builder_.getInt64Ty())), full_);
    std::size_t column = 0;
    for (std::size_t before = 0; before < p; ++before) column += spec_.parts[before].columns.size();
    for (const RowOperand& operand : part.columns) {
      Value* const base = argument(offsetof(RowArguments, columns), column++, builder_.getPtrTy());
      builder_.CreateAlignedStore(value_of(operand), builder_.CreateGEP(builder_.getInt64Ty(), base, state[p]),
                                  llvm::Align(8));
    }
    state[p] = builder_.CreateAdd(state[p], number(1));
    return state;
  }

  /// The step of that number: its value, if it has one.
  void add(const RowStep& step, std::size_t n) {
    Value* const a = value_of(step.a);
    switch (step.opcode) {
      case RowOpcode::apply: values_[n] = applied(step.operation, a, value_of(step.b)); return;
      case RowOpcode::choose:
        values_[n] = builder_.CreateSelect(builder_.CreateICmpNE(a, number(0)), value_of(step.b), value_of(step.c));
        return;
      case RowOpcode::wrap: values_[n] = extended(builder_.CreateTrunc(a, integer_type(step.type)), step.type); return;
      case RowOpcode::offset:
        values_[n] = builder_.CreateAdd(a, builder_.CreateMul(value_of(step.b), value_of(step.c)));
        return;
      case RowOpcode::load: {
        Value* const base =
            argument(offsetof(RowArguments, arrays), static_cast<std::size_t>(step.array), builder_.getPtrTy());
        Value* const at = builder_.CreateGEP(builder_.getInt8Ty(), base, a);
        values_[n] = extended(builder_.CreateAlignedLoad(integer_type(step.type), at, llvm::Align(1)), step.type);
        return;
      }
      case RowOpcode::inside: seldom(builder_.CreateICmpUGE(a, value_of(step.b)), left_); return;
      case RowOpcode::range:
      case RowOpcode::filter: return;
    }
  }

  llvm::Type* integer_type(Scalar type) { return builder_.getIntNTy(8 * static_cast<unsigned>(size_of(type))); }
  Value* extended(Value* v, Scalar type) {
    return is_signed_integer(type) ? builder_.CreateSExt(v, builder_.getInt64Ty())
                                   : builder_.CreateZExt(v, builder_.getInt64Ty());
  }
  /// The result; leaves where there is an overflow.
  Value* checked(llvm::Intrinsic::ID which, Value* a, Value* b) {
    Value* const both = builder_.CreateBinaryIntrinsic(which, a, b);
    seldom(builder_.CreateExtractValue(both, 1), left_);
    return builder_.CreateExtractValue(both, 0);
  }
  Value* truth(Value* condition) { return builder_.CreateZExt(condition, builder_.getInt64Ty()); }

  Value* applied(Operation op, Value* a, Value* b) {
    switch (op) {
      case Operation::add: return checked(llvm::Intrinsic::sadd_with_overflow, a, b);
      case Operation::sub: return checked(llvm::Intrinsic::ssub_with_overflow, a, b);
      case Operation::mul: return checked(llvm::Intrinsic::smul_with_overflow, a, b);
      case Operation::div:
      case Operation::mod: return divided(op, a, b);
      case Operation::min: return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
      case Operation::max: return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
      case Operation::bit_and: return builder_.CreateAnd(a, b);
      case Operation::bit_or: return builder_.CreateOr(a, b);
      case Operation::bit_xor: return builder_.CreateXor(a, b);
      case Operation::shl: return shifted_left(a, b);
      case Operation::shr:
        seldom(builder_.CreateICmpSLT(b, number(0)), left_);
        return builder_.CreateAShr(a, builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b, number(63)));
      case Operation::eq: return truth(builder_.CreateICmpEQ(a, b));
      case Operation::ne: return truth(builder_.CreateICmpNE(a, b));
      case Operation::lt: return truth(builder_.CreateICmpSLT(a, b));
      case Operation::le: return truth(builder_.CreateICmpSLE(a, b));
      case Operation::gt: return truth(builder_.CreateICmpSGT(a, b));
      default: return truth(builder_.CreateICmpSGE(a, b));
    }
  }

  /// Floored; leaves unless the divisor is positive.
  Value* divided(Operation op, Value* a, Value* b) {
    seldom(builder_.CreateICmpSLT(b, number(1)), left_);
    Value* const remainder = builder_.CreateSRem(a, b);
    Value* const is_below = builder_.CreateICmpSLT(remainder, number(0));
    if (op == Operation::mod) return builder_.CreateSelect(is_below, builder_.CreateAdd(remainder, b), remainder);
    return builder_.CreateSub(builder_.CreateSDiv(a, b), truth(is_below));
  }

  /// Leaves where bits are lost, or unless it is by 0 to 63 bits.
  Value* shifted_left(Value* a, Value* b) {
    seldom(builder_.CreateICmpUGT(b, number(63)), left_);
    Value* const out = builder_.CreateShl(a, b);
    seldom(builder_.CreateICmpNE(builder_.CreateAShr(out, b), a), left_);
    return out;
  }

  const RowSpec& spec_;
  std::size_t innermost_;
  llvm::IRBuilder<> builder_, entry_;
  llvm::Function* function_ = nullptr;
  BasicBlock *left_ = nullptr, *full_ = nullptr;
  std::map<std::size_t, Value*> fields_;
  std::map<std::pair<std::size_t, std::size_t>, Value*> arguments_;
  std::vector<Value*> values_;  ///< by step; null where it has none
};

}  // namespace

llvm::Function* emit_rows(llvm::Module& module, const RowSpec& spec) { return RowEmitter(module, spec).emit(); }

}  // namespace kplan::jit
