// How it works: the nest is written as C: one `for` for each dimension, then the values that are used more than
// once as named constants, then one store for each output, its value an infix expression.
#include "jit/kernel_spec.hpp"

namespace kplan::jit {
namespace {

std::string_view infix(Operation op) {
  switch (op) {
    case Operation::add: return " + ";
    case Operation::sub: return " - ";
    case Operation::mul: return " * ";
    case Operation::div: return " / ";
    case Operation::bit_and: return " & ";
    case Operation::bit_or: return " | ";
    case Operation::bit_xor: return " ^ ";
    case Operation::shl: return " << ";
    case Operation::shr: return " >> ";
    case Operation::eq: return " == ";
    case Operation::ne: return " != ";
    case Operation::lt: return " < ";
    case Operation::le: return " <= ";
    case Operation::gt: return " > ";
    case Operation::ge: return " >= ";
    default: return "";
  }
}

std::string stream_name(std::size_t s) { return s == 0 ? "target" : "source" + std::to_string(s); }

/// Appends `+ stride*counter`, or `- ...` for a negative literal.
void add_term(std::string& out, std::int64_t stride, const std::string& counter) {
  if (stride == 0) return;
  const bool negative = stride < 0;
  const std::uint64_t magnitude =
      negative ? std::uint64_t(0) - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
  out += negative ? " - " : " + ";
  if (magnitude != 1) out += std::to_string(magnitude) + "*";
  out += counter;
}

class Writer {
 public:
  explicit Writer(const KernelSpec& spec) : spec_(spec), uses_(spec.instructions.size(), 0) {
    for (const Instruction& in : spec.instructions) {
      if (in.opcode != Opcode::apply) continue;
      const int count = operand_count(in.operation);
      use(in.a);
      if (count > 1) use(in.b);
      if (count > 2) use(in.c);
      use(in.guard);
    }
    for (const Output& out : spec.outputs) use(out.instruction);
  }

  std::string write() {
    out_ = (spec_.name.empty() ? "kernel" : spec_.name) + ":  // iterations " +
           (spec_.is_injective ? "in any order\n" : "one after the other\n");
    if (spec_.has_lists()) open("o", "list_length", true);
    for (std::size_t d = 0; d < spec_.extents.size(); ++d) {
      const bool literal = spec_.extents[d] != at_run_time;
      open("i" + std::to_string(d), literal ? std::to_string(spec_.extents[d]) : "extent" + std::to_string(d),
           !literal);
    }
    if (spec_.copy_bytes != 0) {
      line("memcpy(" + address(0, 0) + ", " + address(1, 0) + ", " + std::to_string(spec_.copy_bytes) + ");");
      return close();
    }
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      if (!is_named(i)) continue;
      line("const " + std::string(name_of(spec_.instructions[i].type)) + " v" + std::to_string(i) + " = " +
           definition(i) + ";");
    }
    for (const Output& out : spec_.outputs) {
      const auto at = static_cast<std::size_t>(out.instruction);
      line(element(spec_.instructions[at].type, 0, out.offset_bytes) + " = " + value(at, false) + ";");
    }
    return close();
  }

 private:
  void use(std::int32_t i) {
    if (i >= 0) ++uses_[static_cast<std::size_t>(i)];
  }
  bool is_named(std::size_t i) const {
    const Opcode code = spec_.instructions[i].opcode;
    return uses_[i] > 1 && (code == Opcode::apply || code == Opcode::load);
  }
  void line(const std::string& text) { out_ += std::string(2 * depth_ + 2, ' ') + text + "\n"; }
  void open(const std::string& counter, const std::string& extent, bool run_time) {
    line("for (" + counter + " = 0; " + counter + " < " + extent + "; ++" + counter + ") {" +
         (run_time ? "  // " + extent + " at run time" : ""));
    ++depth_;
  }

  std::string close() {
    while (depth_ > 0) {
      --depth_;
      line("}");
    }
    return out_;
  }

  std::string address(std::size_t s, std::int64_t offset) const {
    const Stream& stream = spec_.streams[s];
    std::string out = stream_name(s);
    if (stream.is_indexed) {
      out += " + ";
      if (stream.list_scale_bytes != 1) out += std::to_string(stream.list_scale_bytes) + "*";
      out += "list" + std::to_string(s) + "[o]";
    }
    add_term(out, stream.list_stride_bytes, "o");
    for (std::size_t d = 0; d < stream.strides_bytes.size(); ++d) {
      const std::string counter = "i" + std::to_string(d);
      if (stream.strides_bytes[d] == at_run_time) {
        out += " + stride" + std::to_string(s) + "_" + std::to_string(d) + "*" + counter;  // at run time
      } else {
        add_term(out, stream.strides_bytes[d], counter);
      }
    }
    if (offset != 0)
      out += (offset < 0 ? " - " : " + ") +
             std::to_string(offset < 0 ? 0 - static_cast<std::uint64_t>(offset) : static_cast<std::uint64_t>(offset));
    return out;
  }
  std::string element(Scalar type, std::size_t s, std::int64_t offset) const {
    return "*(" + std::string(name_of(type)) + "*)(" + address(s, offset) + ")";
  }

  std::string value(std::size_t i, bool inner = true) const {
    if (is_named(i)) return "v" + std::to_string(i);
    std::string text = definition(i);
    const Instruction& in = spec_.instructions[i];
    const bool compound = (in.opcode == Opcode::apply && !infix(in.operation).empty()) ||
                          in.opcode == Opcode::position ||
                          (in.opcode == Opcode::apply && in.operation == Operation::select);
    return inner && compound ? "(" + text + ")" : text;
  }
  std::string operand(std::int32_t i, bool inner = true) const { return value(static_cast<std::size_t>(i), inner); }

  std::string definition(std::size_t i) const {
    const Instruction& in = spec_.instructions[i];
    switch (in.opcode) {
      case Opcode::load: return element(in.type, static_cast<std::size_t>(in.stream), in.offset_bytes);
      case Opcode::constant: return kplan::to_text(ScalarValue::load(in.type, in.bits));
      case Opcode::scalar: return "scalar" + std::to_string(in.slot);
      case Opcode::position: {
        std::string out = in.slot >= 0 ? "scalar" + std::to_string(in.slot) : "0";
        for (std::size_t d = 0; d < in.position_strides.size(); ++d)
          add_term(out, in.position_strides[d], "i" + std::to_string(d));
        return out;
      }
      case Opcode::apply: break;
    }
    std::string out;
    if (in.operation == Operation::select) {
      out = operand(in.a) + " ? " + operand(in.b) + " : " + operand(in.c);
    } else if (in.operation == Operation::convert) {
      out = std::string(name_of(in.type)) + "(" + operand(in.a, false) + ")";
    } else if (!infix(in.operation).empty()) {
      out = operand(in.a) + std::string(infix(in.operation)) + operand(in.b);
    } else {
      out = std::string(name_of(in.operation)) + "(" + operand(in.a, false);
      if (operand_count(in.operation) > 1) out += ", " + operand(in.b, false);
      out += ")";
    }
    if (in.guard >= 0) out = "(" + out + " if " + operand(in.guard) + ")";
    return out;
  }

  const KernelSpec& spec_;
  std::vector<int> uses_;
  std::string out_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string KernelSpec::to_text() const { return Writer(*this).write(); }

}  // namespace kplan::jit
