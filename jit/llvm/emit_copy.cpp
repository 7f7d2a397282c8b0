// How it works: small elements in lanes go as vectors; other short runs as the fewest loads and stores that cover
// them, the last two overlapping where that saves some; long runs and those of a length known at run time go to memcpy.
#include <algorithm>
#include <bit>

#include "jit/llvm/elements.hpp"

namespace kplan::jit {
namespace {

using llvm::Value;

constexpr std::int64_t longest_inline_copy = 1024;

/// A piece of an inline copy.
struct Piece {
  std::int64_t offset, bytes;
};

std::vector<Piece> pieces_of(std::int64_t bytes, std::int64_t vector_bytes) {
  std::vector<Piece> out;
  std::int64_t done = 0;
  while (done < bytes) {
    const std::int64_t rest = bytes - done;
    std::int64_t piece =
        std::min(vector_bytes, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rest))));
    const auto above = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rest)));
    if (rest != piece && above <= std::min(vector_bytes, bytes)) {
      out.push_back({bytes - above, above});
      break;
    }
    out.push_back({done, piece});
    done += piece;
  }
  return out;
}

void copy_inline(Frame& frame, Value* to, Value* from, std::int64_t bytes, int vector_bytes) {
  auto& b = frame.builder;
  std::vector<Value*> loaded;
  const auto pieces = pieces_of(bytes, vector_bytes);
  for (const Piece& piece : pieces) {
    const auto size = static_cast<unsigned>(piece.bytes);
    llvm::Type* type = size <= 8 ? static_cast<llvm::Type*>(b.getIntNTy(8 * size))
                                 : llvm::FixedVectorType::get(b.getInt64Ty(), size / 8);
    auto* load = b.CreateAlignedLoad(type, frame.offset(from, piece.offset), llvm::Align(1));
    frame.mark(load, false);
    loaded.push_back(load);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    frame.mark(b.CreateAlignedStore(loaded[i], frame.offset(to, pieces[i].offset), llvm::Align(1)), true);
  }
}

void call_memcpy(Frame& frame, Value* to, Value* from, Value* bytes) {
  auto& b = frame.builder;
  auto* type = llvm::FunctionType::get(b.getPtrTy(), {b.getPtrTy(), b.getPtrTy(), b.getInt64Ty()}, false);
  auto callee = frame.function->getParent()->getOrInsertFunction("memcpy", type);
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  b.CreateCall(callee, {to, from, bytes});
}

/// Whole lines of the target past the caches, what is before the first and behind the last through them.
void copy_past_caches(Frame& frame, Value* to, Value* from, Value* bytes, int vector_bytes) {
  constexpr std::int64_t line_bytes = 64;
  auto& b = frame.builder;
  Value* const before = b.CreateAnd(b.CreateNeg(b.CreatePtrToInt(to, b.getInt64Ty())), frame.number(line_bytes - 1));
  call_memcpy(frame, to, from, before);
  Value* const first = frame.offset(to, before);
  Value* const source = frame.offset(from, before);
  Value* const left = b.CreateSub(bytes, before);
  Value* const whole = b.CreateAnd(left, frame.number(-line_bytes));
  auto* const type = llvm::FixedVectorType::get(b.getInt64Ty(), static_cast<unsigned>(vector_bytes / 8));
  frame.count_up(b.CreateAShr(left, 6), [&](Value* line) {
    Value* const at = b.CreateShl(line, 6);
    for (std::int64_t i = 0; i < line_bytes; i += vector_bytes) {
      auto* load = b.CreateAlignedLoad(type, frame.offset(frame.offset(source, at), i), llvm::Align(1));
      frame.mark(load, false);
      frame.store_past_caches(load, frame.offset(frame.offset(first, at), i));
    }
  });
  call_memcpy(frame, frame.offset(first, whole), frame.offset(source, whole), b.CreateSub(left, whole));
}

/// A run that is long, or as long as it is found to be.
void copy_long(Frame& frame, Value* to, Value* from, Value* bytes, int vector_bytes) {
  auto& b = frame.builder;
  // Stores past the caches are in no order with others.
  if (!frame.spec.is_injective) return call_memcpy(frame, to, from, bytes);
  Value* const goes_past =
      b.CreateAnd(frame.goes_past_caches(), b.CreateICmpSGE(bytes, frame.number(least_run_past_caches)));
  frame.either(
      goes_past, [&] { copy_past_caches(frame, to, from, bytes, vector_bytes); },
      [&] { call_memcpy(frame, to, from, bytes); });
}

}  // namespace

void emit_copies(Frame& frame, const LoopNest& nest, const Place& place, int lanes, int vector_bytes) {
  Memory memory(frame, nest, place, lanes);
  const std::int64_t bytes = nest.copy.factor;
  if (lanes > 1) return memory.store_bits(memory.load_bits(1, bytes));
  Value* to = memory.address(0, 0);
  Value* from = memory.address(1, 0);
  if (nest.copy.is_run_time || bytes > longest_inline_copy)
    return copy_long(frame, to, from, frame.count(nest.copy), vector_bytes);
  copy_inline(frame, to, from, bytes, vector_bytes);
}

}  // namespace kplan::jit
