// Equality and key leave the name out: it says nothing about the code.
#include "jit/kernel_spec.hpp"

#include <algorithm>

#include "jit/key_writer.hpp"

namespace kplan::jit {
namespace {

void write(KeyWriter& key, const Instruction& in) {
  key.unsigned_number(static_cast<std::uint64_t>(in.opcode));
  key.unsigned_number(static_cast<std::uint64_t>(in.operation));
  key.unsigned_number(static_cast<std::uint64_t>(in.type));
  for (std::int64_t v : {in.a, in.b, in.c, in.guard, in.stream, in.slot}) key.number(v);
  key.number(in.offset_bytes);
  key.unsigned_number(in.bits[0]);
  key.unsigned_number(in.bits[1]);
  key.numbers(in.position_strides);
}

}  // namespace

bool KernelSpec::operator==(const KernelSpec& other) const {
  return extents == other.extents && streams == other.streams && copy_bytes == other.copy_bytes &&
         instructions == other.instructions && outputs == other.outputs && is_injective == other.is_injective;
}

bool KernelSpec::has_lists() const {
  return std::any_of(streams.begin(), streams.end(), [](const Stream& s) { return s.is_indexed; });
}

bool KernelSpec::is_too_long() const {
  constexpr std::size_t longest = 256;
  const auto complex = std::ranges::count_if(instructions, [](const Instruction& in) { return is_complex(in.type); });
  return instructions.size() + 3 * static_cast<std::size_t>(complex) > longest;
}

std::string KernelSpec::key() const {
  KeyWriter key;
  key.numbers(extents);
  key.unsigned_number(streams.size());
  for (const Stream& stream : streams) {
    key.unsigned_number(stream.is_indexed);
    key.numbers(stream.strides_bytes);
    key.number(stream.list_stride_bytes);
    key.number(stream.list_scale_bytes);
  }
  key.number(copy_bytes);
  key.unsigned_number(is_injective);
  key.unsigned_number(instructions.size());
  for (const Instruction& in : instructions) write(key, in);
  key.unsigned_number(outputs.size());
  for (const Output& out : outputs) {
    key.number(out.offset_bytes);
    key.number(out.instruction);
  }
  return key.take();
}

}  // namespace kplan::jit
