#pragma once
// What a kernel's code is built from: the arguments, loaded once at the function's entry where they are used at
// all, the place in the nest that code is being emitted for, and loops.

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <vector>

#include "jit/llvm/loops.hpp"

namespace kplan::jit {

/// Where in the nest code is emitted: the streams' addresses there (without the entry of a list that runs in
/// lanes), then the counters of the spec's dimensions, then the list's.
struct Place {
  std::vector<llvm::Value*> slots;
  std::size_t stream_count = 0;

  llvm::Value* pointer(std::size_t stream) const { return slots[stream]; }
  llvm::Value*& pointer(std::size_t stream) { return slots[stream]; }
  llvm::Value* position(int dimension) const { return slots[stream_count + static_cast<std::size_t>(dimension)]; }
  llvm::Value* list_position() const { return slots.back(); }
};

/// A loop's turns, `step` iterations at a time, and the iterations left over; literals where the count is one.
struct Split {
  llvm::Value* trips;
  llvm::Value* rest;
};

class Frame {
 public:
  Frame(llvm::Module& module, const KernelSpec& kernel_spec);

  Place start();
  llvm::Value* count(const Count& count);
  /// `step` is a power of two. A negative count is an empty one.
  Split split(const Count& count, std::int64_t step);
  llvm::Value* stride(std::size_t stream, int dimension);
  llvm::Value* list_entry(std::size_t stream, llvm::Value* at);
  /// Whether stores are to go past the caches (an i1); a literal where the processor has no such stores.
  llvm::Value* goes_past_caches();
  /// Whether what lists name is hardly in caches (an i1).
  llvm::Value* lists_go_far();
  /// Word 0 or 1 of a run-time scalar's slot, as the given type.
  llvm::Value* scalar(int slot, std::int64_t byte, llvm::Type* type);

  llvm::Value* offset(llvm::Value* pointer, llvm::Value* bytes) {
    return builder.CreateGEP(builder.getInt8Ty(), pointer, bytes);
  }
  llvm::Value* offset(llvm::Value* pointer, std::int64_t bytes) {
    return bytes == 0 ? pointer : offset(pointer, builder.getInt64(static_cast<std::uint64_t>(bytes)));
  }
  llvm::Value* number(std::int64_t v) { return builder.getInt64(static_cast<std::uint64_t>(v)); }

  /// The place `steps` turns of the loop further on.
  Place advanced(const Place& from, const Loop& loop, std::int64_t steps);
  /// Emits a loop of `trips` turns, each `steps` turns of the nest's loop; returns the place behind it.
  Place loop(const Place& from, const Loop& loop, llvm::Value* trips, std::int64_t steps,
             llvm::function_ref<void(const Place&)> body);
  /// Asks for a line that will be read, or written.
  void prefetch(llvm::Value* pointer, bool is_target);
  /// Emits a loop over the numbers from 0 up to `trips`.
  void count_up(llvm::Value* trips, llvm::function_ref<void(llvm::Value*)> body);
  /// Emits code for when the condition holds and for when it does not.
  void either(llvm::Value* condition, llvm::function_ref<void()> holds, llvm::function_ref<void()> fails);
  /// Leaves the kernel with the number of the iteration at the place when the condition holds.
  void fail_if(llvm::Value* condition, const Place& place);
  void finish();
  /// Tells the code generator that sources and target do not overlap.
  void mark(llvm::Instruction* access, bool is_target);
  /// A store past the caches, of a vector at an address that its size divides.
  void store_past_caches(llvm::Value* vector, llvm::Value* to);

  const KernelSpec& spec;
  llvm::Function* function;
  llvm::IRBuilder<> builder;

 private:
  llvm::Value* argument(int field, std::int64_t index, llvm::Type* type);
  /// What a turn of the loop adds to a slot of the place; null when nothing.
  llvm::Value* step_of(std::size_t slot, const Loop& loop);

  llvm::MDNode* target_scope_ = nullptr;     ///< null where the order of accesses matters
  llvm::Value* goes_past_caches_ = nullptr;  ///< null: nobody asked
  bool needs_positions_ = false;             ///< some instruction reads them, or a failure reports them
  llvm::IRBuilder<> entry_;
  std::map<std::pair<int, std::int64_t>, llvm::Value*> arguments_;
};

}  // namespace kplan::jit
