// How it works: the operand's type says which family of functions it is. A selection moves bits, so only the width of
// what is selected counts.
#include "jit/precompiled/block_operations.hpp"

namespace kplan::jit {
namespace {

template <class Bits>
int select(const BlockOperands& o) {
  auto* __restrict out = reinterpret_cast<Bits*>(o.out);
  const auto* condition = reinterpret_cast<const std::uint8_t*>(o.a);
  const auto *b = reinterpret_cast<const Bits*>(o.b), *c = reinterpret_cast<const Bits*>(o.c);
  for (int i = 0; i < o.count; ++i) out[i] = condition[i] != 0 ? b[i] : c[i];
  return o.count;
}

BlockFunction selection(std::size_t bytes) {
  return bytes == 1   ? select<std::uint8_t>
         : bytes == 2 ? select<std::uint16_t>
         : bytes == 4 ? select<std::uint32_t>
                      : select<std::uint64_t>;
}

}  // namespace

BlockFunction block_function(Operation op, Scalar operand_type, Scalar result_type) {
  if (op == Operation::select) return selection(size_of(result_type));
  if (op == Operation::convert) return conversion_function(operand_type, result_type);
  if (is_complex(operand_type)) return complex_function(op, operand_type);
  if (is_real(operand_type)) return real_function(op, operand_type);
  return integer_function(op, operand_type);
}

}  // namespace kplan::jit
