#pragma once
// Small specs that several tests share.

#include "jit/kernel_spec.hpp"

namespace kplan::test {

inline jit::Instruction load(std::int32_t stream, Scalar type, std::int64_t offset_bytes = 0) {
  jit::Instruction in;
  in.opcode = jit::Opcode::load;
  in.stream = stream;
  in.type = type;
  in.offset_bytes = offset_bytes;
  return in;
}

inline jit::Instruction apply(Operation op, Scalar type, std::int32_t a, std::int32_t b = -1, std::int32_t c = -1) {
  jit::Instruction in;
  in.opcode = jit::Opcode::apply;
  in.operation = op;
  in.type = type;
  in.a = a;
  in.b = b;
  in.c = c;
  return in;
}

inline jit::KernelSpec copy_spec(std::vector<std::int64_t> extents, std::vector<std::int64_t> target,
                                 std::vector<std::int64_t> source, std::int64_t bytes) {
  jit::KernelSpec spec;
  spec.name = "copy";
  spec.extents = std::move(extents);
  spec.streams = {{false, std::move(target), 0}, {false, std::move(source), 0}};
  spec.copy_bytes = bytes;
  return spec;
}

/// target[i] = f64(source[i]) over `count` elements with a source stride.
inline jit::KernelSpec widening_spec(std::int64_t count, std::int64_t source_stride = 4) {
  jit::KernelSpec spec;
  spec.name = "widen";
  spec.extents = {count};
  spec.streams = {{false, {8}, 0}, {false, {source_stride}, 0}};
  spec.instructions = {load(1, Scalar::f32), apply(Operation::convert, Scalar::f64, 0)};
  spec.outputs = {{0, 1}};
  return spec;
}

}  // namespace kplan::test
