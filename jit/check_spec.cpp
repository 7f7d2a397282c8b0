// How it works: one walk over the spec, each rule with a code of its own. A spec that breaks one was made by a
// bug of ours, so the message names the kernel and the values, for the report.
#include "jit/kernel_spec.hpp"
#include "kplan/error.hpp"

namespace kplan::jit {
namespace {

[[noreturn]] void fail(const KernelSpec& spec, const char* code, const std::string& what) {
  throw InternalError(code, "kernel " + (spec.name.empty() ? std::string("(unnamed)") : spec.name) + ": " + what);
}

std::string in_text(std::size_t i) { return "instruction " + std::to_string(i) + ": "; }

bool takes(Operation op, Scalar type) {
  switch (op) {
    case Operation::convert:
    case Operation::select:
    case Operation::eq:
    case Operation::ne: return true;
    case Operation::neg:
    case Operation::add:
    case Operation::sub:
    case Operation::mul:
    case Operation::div: return type != Scalar::boolean;
    case Operation::lt:
    case Operation::le:
    case Operation::gt:
    case Operation::ge:
    case Operation::min:
    case Operation::max: return !is_complex(type);
    case Operation::bit_and:
    case Operation::bit_or:
    case Operation::bit_xor: return is_integer(type) || type == Scalar::boolean;
    case Operation::logical_not: return type == Scalar::boolean;
    case Operation::abs: return is_integer(type) || is_real(type);
    case Operation::sqrt: return is_real(type);
    default: return is_integer(type);
  }
}

void check_operand(const KernelSpec& spec, std::size_t at, std::int32_t operand) {
  if (operand < 0 || static_cast<std::size_t>(operand) >= at) {
    fail(spec, "KP-I106", in_text(at) + "operand " + std::to_string(operand) + " is not an earlier instruction");
  }
}

void check_apply(const KernelSpec& spec, std::size_t at) {
  const Instruction& in = spec.instructions[at];
  const int count = operand_count(in.operation);
  check_operand(spec, at, in.a);
  if (count > 1) check_operand(spec, at, in.b);
  if (count > 2) check_operand(spec, at, in.c);
  auto type = [&](std::int32_t i) { return spec.instructions[static_cast<std::size_t>(i)].type; };
  bool ok = takes(in.operation, type(in.a));
  if (in.operation == Operation::select) {
    ok = type(in.a) == Scalar::boolean && type(in.b) == in.type && type(in.c) == in.type;
  } else if (in.operation != Operation::convert) {
    if (count > 1) ok = ok && type(in.a) == type(in.b);
    ok = ok && in.type == (is_comparison(in.operation) ? Scalar::boolean : type(in.a));
  }
  if (!ok) {
    fail(spec, "KP-I107",
         in_text(at) + std::string(name_of(in.operation)) + " does not take " + std::string(name_of(type(in.a))) +
             " to " + std::string(name_of(in.type)));
  }
  if (in.guard == -1) return;
  check_operand(spec, at, in.guard);
  if (type(in.guard) != Scalar::boolean || !divides(in.operation) || !is_integer(in.type)) {
    fail(spec, "KP-I111", in_text(at) + "only an integer division has a guard, and it is boolean");
  }
}

void check_instruction(const KernelSpec& spec, std::size_t at) {
  const Instruction& in = spec.instructions[at];
  switch (in.opcode) {
    case Opcode::load:
      if (in.stream < 0 || static_cast<std::size_t>(in.stream) >= spec.streams.size()) {
        fail(spec, "KP-I108",
             in_text(at) + "stream " + std::to_string(in.stream) + " of " + std::to_string(spec.streams.size()));
      }
      return;
    case Opcode::constant: return;
    case Opcode::scalar:
      if (in.slot < 0) fail(spec, "KP-I110", in_text(at) + "slot " + std::to_string(in.slot));
      return;
    case Opcode::position:
      if (in.slot < -1 || in.type != Scalar::i64 || in.position_strides.size() != spec.extents.size()) {
        fail(spec, "KP-I110",
             in_text(at) + "a position is an i64 with one stride for each of the " +
                 std::to_string(spec.extents.size()) + " dimensions");
      }
      return;
    case Opcode::apply: return check_apply(spec, at);
  }
  fail(spec, "KP-I106", in_text(at) + "opcode " + std::to_string(static_cast<int>(in.opcode)));
}

void check_shape(const KernelSpec& spec) {
  if (spec.extents.size() > 8) fail(spec, "KP-I101", std::to_string(spec.extents.size()) + " dimensions, 8 at most");
  for (std::int64_t extent : spec.extents) {
    if (extent != at_run_time && extent <= 0) fail(spec, "KP-I102", "extent " + std::to_string(extent));
  }
  if (spec.streams.empty()) fail(spec, "KP-I103", "no target stream");
  for (const Stream& stream : spec.streams) {
    if (stream.strides_bytes.size() != spec.extents.size()) {
      fail(spec, "KP-I104",
           std::to_string(stream.strides_bytes.size()) + " strides for " + std::to_string(spec.extents.size()) +
               " dimensions");
    }
    if (stream.list_stride_bytes != 0 && !spec.has_lists())
      fail(spec, "KP-I104", "a list stride where no stream is indexed");
    if (stream.list_scale_bytes <= 0)
      fail(spec, "KP-I104", "a list whose entries count " + std::to_string(stream.list_scale_bytes) + " bytes");
    if (stream.list_stride_bytes == at_run_time) fail(spec, "KP-I104", "a list stride is a literal");
  }
}

}  // namespace

void check(const KernelSpec& spec) {
  check_shape(spec);
  if (spec.copy_bytes != 0) {
    if (spec.copy_bytes < 0 || spec.streams.size() != 2 || !spec.instructions.empty() || !spec.outputs.empty()) {
      fail(spec, "KP-I105",
           "a copy of " + std::to_string(spec.copy_bytes) + " bytes has two streams and no instructions");
    }
    return;
  }
  for (std::size_t i = 0; i < spec.instructions.size(); ++i) check_instruction(spec, i);
  if (spec.outputs.empty()) fail(spec, "KP-I109", "stores nothing");
  for (const Output& out : spec.outputs) {
    if (out.instruction < 0 || static_cast<std::size_t>(out.instruction) >= spec.instructions.size()) {
      fail(spec, "KP-I109",
           "stores instruction " + std::to_string(out.instruction) + " of " + std::to_string(spec.instructions.size()));
    }
  }
}

}  // namespace kplan::jit
