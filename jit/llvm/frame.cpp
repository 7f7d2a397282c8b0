// How it works: argument loads go into the entry block as they are first asked for. Loops are guarded do-while loops
// with one counter and one pointer for each stream that moves; what is constant in a step folds into addresses.
#include "jit/llvm/frame.hpp"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cstddef>

#include "jit/llvm/symbol_name.hpp"

namespace kplan::jit {

using llvm::Value;

namespace {

enum Field { bases, lists, list_length, extents, strides_bytes, scalars, past_caches, far_lists };

}  // namespace

Frame::Frame(llvm::Module& module, const KernelSpec& kernel_spec)
    : spec(kernel_spec), function(nullptr), builder(module.getContext()), entry_(module.getContext()) {
  auto* type = llvm::FunctionType::get(builder.getInt64Ty(), {builder.getPtrTy()}, false);
  function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                    symbol_name(module, spec.name.empty() ? "kernel" : spec.name), module);
  function->setDoesNotThrow();
  needs_positions_ = std::any_of(spec.instructions.begin(), spec.instructions.end(), [](const Instruction& in) {
    return in.opcode == Opcode::position || (in.opcode == Opcode::apply && divides(in.operation));
  });
  function->getArg(0)->setName("arguments");
  if (spec.is_injective) {
    llvm::MDBuilder metadata(module.getContext());
    auto* domain = metadata.createAnonymousAliasScopeDomain("kernel");
    target_scope_ = llvm::MDNode::get(module.getContext(), {metadata.createAnonymousAliasScope(domain, "target")});
  }
  auto* entry = llvm::BasicBlock::Create(module.getContext(), "entry", function);
  auto* body = llvm::BasicBlock::Create(module.getContext(), "body", function);
  entry_.SetInsertPoint(llvm::BranchInst::Create(body, entry));
  builder.SetInsertPoint(body);
}

void Frame::mark(llvm::Instruction* access, bool is_target) {
  if (target_scope_ == nullptr) return;
  access->setMetadata(is_target ? llvm::LLVMContext::MD_alias_scope : llvm::LLVMContext::MD_noalias, target_scope_);
}

Value* Frame::argument(int field, std::int64_t index, llvm::Type* type) {
  static constexpr std::size_t at[] = {offsetof(KernelArguments, bases),
                                       offsetof(KernelArguments, lists),
                                       offsetof(KernelArguments, list_length),
                                       offsetof(KernelArguments, extents),
                                       offsetof(KernelArguments, strides_bytes),
                                       offsetof(KernelArguments, scalars),
                                       offsetof(KernelArguments, goes_past_caches),
                                       offsetof(KernelArguments, lists_go_far)};
  auto load = [&](Value* from, std::size_t bytes, llvm::Type* t) {
    return entry_.CreateAlignedLoad(t, entry_.CreateConstGEP1_64(entry_.getInt8Ty(), from, bytes), llvm::Align(1));
  };
  const bool is_flag = field == past_caches || field == far_lists;
  const bool is_array = field != list_length && !is_flag;
  Value*& array = arguments_[{field, -1}];
  if (array == nullptr) {
    llvm::Type* const held = is_flag    ? entry_.getInt32Ty()
                             : is_array ? static_cast<llvm::Type*>(entry_.getPtrTy())
                                        : entry_.getInt64Ty();
    array = load(function->getArg(0), at[field], held);
  }
  if (!is_array) return array;
  Value* base = array;
  if (field == scalars) return load(base, static_cast<std::size_t>(index), type);
  Value*& value = arguments_[{field, index}];
  if (value == nullptr) value = load(base, static_cast<std::size_t>(8 * index), type);
  return value;
}

Place Frame::start() {
  Place place;
  place.stream_count = spec.streams.size();
  for (std::size_t s = 0; s < place.stream_count; ++s) {
    place.slots.push_back(argument(bases, static_cast<std::int64_t>(s), builder.getPtrTy()));
  }
  place.slots.resize(place.stream_count + spec.extents.size() + 1, number(0));
  return place;
}

Value* Frame::count(const Count& count) {
  if (!count.is_run_time) return number(count.factor);
  Value* extent =
      argument(count.dimension == list_dimension ? list_length : extents, count.dimension, builder.getInt64Ty());
  return count.factor == 1 ? extent : builder.CreateMul(extent, number(count.factor));
}

Value* Frame::goes_past_caches() {
  if (!llvm::Triple(function->getParent()->getTargetTriple()).isX86()) return builder.getFalse();
  if (goes_past_caches_ == nullptr) goes_past_caches_ = entry_.CreateIsNotNull(argument(past_caches, 0, nullptr));
  return goes_past_caches_;
}

Value* Frame::lists_go_far() { return entry_.CreateIsNotNull(argument(far_lists, 0, nullptr)); }

void Frame::store_past_caches(Value* vector, Value* to) {
  const std::uint64_t bytes = function->getDataLayout().getTypeStoreSize(vector->getType());
  auto* const store = builder.CreateAlignedStore(vector, to, llvm::Align(bytes));
  mark(store, true);
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(builder.getContext(), {llvm::ConstantAsMetadata::get(builder.getInt32(1))}));
}

Split Frame::split(const Count& count, std::int64_t step) {
  if (!count.is_run_time) return {number(count.factor / step), number(count.factor % step)};
  Value* total = this->count(count);
  const auto shift = static_cast<std::uint64_t>(__builtin_ctzll(static_cast<unsigned long long>(step)));
  Value* rest = builder.CreateAnd(total, number(step - 1));
  return {builder.CreateAShr(total, shift),
          builder.CreateSelect(builder.CreateICmpSGT(total, number(0)), rest, number(0))};
}

Value* Frame::stride(std::size_t stream, int dimension) {
  const std::int64_t literal =
      dimension == list_dimension ? spec.streams[stream].list_stride_bytes : stride_along(spec, stream, dimension);
  if (literal != at_run_time) return number(literal);
  return argument(strides_bytes, static_cast<std::int64_t>(stream * spec.extents.size()) + dimension,
                  builder.getInt64Ty());
}

Value* Frame::list_entry(std::size_t stream, Value* at) {
  Value* list = argument(lists, static_cast<std::int64_t>(stream), builder.getPtrTy());
  auto* entry = builder.CreateAlignedLoad(builder.getInt32Ty(), builder.CreateGEP(builder.getInt32Ty(), list, at),
                                          llvm::Align(1));
  mark(entry, /*is_target=*/false);
  return builder.CreateNUWMul(builder.CreateZExt(entry, builder.getInt64Ty()),
                              number(spec.streams[stream].list_scale_bytes));
}

Value* Frame::scalar(int slot, std::int64_t byte, llvm::Type* type) {
  return argument(scalars, 16 * std::int64_t(slot) + byte, type);
}

Value* Frame::step_of(std::size_t slot, const Loop& loop) {
  const std::size_t streams = spec.streams.size();
  if (slot < streams) {
    Value* bytes = stride(slot, loop.dimension);
    const auto* literal = llvm::dyn_cast<llvm::ConstantInt>(bytes);
    return literal != nullptr && literal->isZero() ? nullptr : bytes;
  }
  const std::size_t last = streams + spec.extents.size();
  if (loop.dimension == list_dimension) return slot == last ? number(1) : nullptr;
  return needs_positions_ && slot == streams + static_cast<std::size_t>(loop.dimension) ? number(1) : nullptr;
}

Place Frame::advanced(const Place& from, const Loop& loop, std::int64_t steps) {
  Place to = from;
  if (steps == 0) return to;
  for (std::size_t i = 0; i < to.slots.size(); ++i) {
    Value* step = step_of(i, loop);
    if (step == nullptr) continue;
    Value* distance = steps == 1 ? step : builder.CreateMul(step, number(steps));
    to.slots[i] = i < to.stream_count ? offset(to.slots[i], distance) : builder.CreateAdd(to.slots[i], distance);
  }
  return to;
}

Place Frame::loop(const Place& from, const Loop& loop, Value* trips, std::int64_t steps,
                  llvm::function_ref<void(const Place&)> body) {
  const auto* literal = llvm::dyn_cast<llvm::ConstantInt>(trips);
  if (literal != nullptr && literal->isZero()) return from;
  auto* before = builder.GetInsertBlock();
  auto* turn = llvm::BasicBlock::Create(builder.getContext(), "turn", function);
  auto* after = llvm::BasicBlock::Create(builder.getContext(), "after", function);
  const bool is_guarded = literal == nullptr;
  if (is_guarded) builder.CreateCondBr(builder.CreateICmpSGT(trips, number(0)), turn, after);
  else builder.CreateBr(turn);

  builder.SetInsertPoint(turn);
  auto* left = builder.CreatePHI(builder.getInt64Ty(), 2, "left");
  left->addIncoming(trips, before);
  Place now = from;
  std::vector<llvm::PHINode*> carried(now.slots.size(), nullptr);
  for (std::size_t i = 0; i < now.slots.size(); ++i) {
    if (step_of(i, loop) == nullptr) continue;
    carried[i] = builder.CreatePHI(now.slots[i]->getType(), 2);
    carried[i]->addIncoming(now.slots[i], before);
    now.slots[i] = carried[i];
  }
  body(now);

  const Place next = advanced(now, loop, steps);
  Value* fewer = builder.CreateSub(left, number(1));
  auto* latch = builder.GetInsertBlock();
  left->addIncoming(fewer, latch);
  builder.CreateCondBr(builder.CreateICmpNE(fewer, number(0)), turn, after);

  builder.SetInsertPoint(after);
  Place behind = from;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    if (carried[i] == nullptr) continue;
    carried[i]->addIncoming(next.slots[i], latch);
    auto* last = builder.CreatePHI(carried[i]->getType(), 2);
    last->addIncoming(next.slots[i], latch);
    if (is_guarded) last->addIncoming(from.slots[i], before);
    behind.slots[i] = last;
  }
  return behind;
}

void Frame::prefetch(Value* pointer, bool is_target) {
  const auto flag = [&](std::uint32_t v) { return builder.getInt32(v); };
  builder.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder.getPtrTy()},
                          {pointer, flag(is_target ? 1 : 0), flag(3), flag(1)});
}

void Frame::count_up(Value* trips, llvm::function_ref<void(Value*)> body) {
  auto* before = builder.GetInsertBlock();
  auto* turn = llvm::BasicBlock::Create(builder.getContext(), "turn", function);
  auto* after = llvm::BasicBlock::Create(builder.getContext(), "after", function);
  builder.CreateCondBr(builder.CreateICmpSGT(trips, number(0)), turn, after);
  builder.SetInsertPoint(turn);
  auto* at = builder.CreatePHI(builder.getInt64Ty(), 2);
  at->addIncoming(number(0), before);
  body(at);
  Value* const next = builder.CreateAdd(at, number(1));
  at->addIncoming(next, builder.GetInsertBlock());
  builder.CreateCondBr(builder.CreateICmpSLT(next, trips), turn, after);
  builder.SetInsertPoint(after);
}

void Frame::either(Value* condition, llvm::function_ref<void()> holds, llvm::function_ref<void()> fails) {
  auto* then = llvm::BasicBlock::Create(builder.getContext(), "then", function);
  auto* otherwise = llvm::BasicBlock::Create(builder.getContext(), "otherwise", function);
  auto* after = llvm::BasicBlock::Create(builder.getContext(), "after", function);
  builder.CreateCondBr(condition, then, otherwise);
  builder.SetInsertPoint(then);
  holds();
  builder.CreateBr(after);
  builder.SetInsertPoint(otherwise);
  fails();
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
}

void Frame::fail_if(Value* condition, const Place& place) {
  auto* failed = llvm::BasicBlock::Create(builder.getContext(), "zero_divisor", function);
  auto* fine = llvm::BasicBlock::Create(builder.getContext(), "fine", function);
  builder.CreateCondBr(condition, failed, fine);
  builder.SetInsertPoint(failed);
  Value* iteration = number(1);
  Value* weight = number(1);
  for (std::size_t d = spec.extents.size(); d-- > 0;) {
    iteration = builder.CreateAdd(iteration, builder.CreateMul(place.position(static_cast<int>(d)), weight));
    const int dimension = static_cast<int>(d);
    const bool is_literal = spec.extents[d] != at_run_time;
    weight = builder.CreateMul(weight, is_literal ? number(spec.extents[d]) : count({1, true, dimension}));
  }
  builder.CreateRet(builder.CreateAdd(iteration, builder.CreateMul(place.list_position(), weight)));
  builder.SetInsertPoint(fine);
}

void Frame::finish() {
  if (goes_past_caches_ != nullptr) {
    either(
        goes_past_caches_, [&] { builder.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }, [] {});
  }
  builder.CreateRet(number(0));
}

}  // namespace kplan::jit
