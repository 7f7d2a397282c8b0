#pragma once
// The body of a kernel's loops: one element, or a vector of them.

#include "jit/llvm/frame.hpp"
#include "jit/llvm/operations.hpp"

namespace kplan::jit {

/// Emits the memory accesses of elements in lanes along the nest's inner loop, all from one place.
class Memory {
 public:
  Memory(Frame& frame, const LoopNest& nest, const Place& place, int lanes);

  /// Loads `type` at a byte offset of the stream's elements; the lanes are the elements from the place on.
  Lanes load(std::size_t stream, std::int64_t offset_bytes, Scalar type);
  void store(std::int64_t offset_bytes, Scalar type, Lanes value);
  /// Bits of `bytes` each, for copies.
  llvm::Value* load_bits(std::size_t stream, std::int64_t bytes);
  void store_bits(llvm::Value* value);
  /// The address of the stream's element in a lane.
  llvm::Value* address(std::size_t stream, int lane);

 private:
  llvm::Value* load_from(llvm::Type* type, llvm::Value* from, std::size_t stream);
  void store_to(llvm::Value* value, llvm::Value* to);
  llvm::Value* lane_offset(std::size_t stream, std::int64_t bytes, int lane);
  llvm::Value* gather(std::size_t stream, std::int64_t offset_bytes, llvm::Type* type);
  llvm::Value* load_near(std::size_t stream, std::int64_t offset_bytes, llvm::Type* type, std::int64_t stride);
  llvm::Value* load_lanes(std::size_t stream, std::int64_t offset_bytes, llvm::Type* type);
  void store_lanes(std::int64_t offset_bytes, llvm::Value* value);

  Frame& frame_;
  const LoopNest& nest_;
  const Place& place_;
  int lanes_;
  std::map<std::pair<std::size_t, int>, llvm::Value*> addresses_;
};

/// Emits the instructions and stores of the spec for so many elements from the place on.
void emit_elements(Frame& frame, const LoopNest& nest, const Place& place, int lanes);

/// Emits the copy of so many elements from the place on.
void emit_copies(Frame& frame, const LoopNest& nest, const Place& place, int lanes, int vector_bytes);

/// Emits the two loops of a transposition, in square tiles.
void emit_transposition(Frame& frame, const LoopNest& nest, const Place& place);

}  // namespace kplan::jit
