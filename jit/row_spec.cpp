// Equality and key leave the name out: it says nothing about the code. As text, a spec is C.
#include "jit/row_spec.hpp"

#include <algorithm>

#include "jit/key_writer.hpp"
#include "kplan/error.hpp"

namespace kplan::jit {
namespace {

bool has_value(const RowStep& step) { return step.opcode != RowOpcode::filter && step.opcode != RowOpcode::inside; }

int operands_of(const RowStep& step) {
  switch (step.opcode) {
    case RowOpcode::wrap:
    case RowOpcode::load:
    case RowOpcode::filter: return 1;
    case RowOpcode::apply:
    case RowOpcode::inside: return 2;
    default: return 3;
  }
}

void write(KeyWriter& key, const RowOperand& operand) {
  key.unsigned_number(static_cast<std::uint64_t>(operand.kind));
  key.number(operand.number);
}

void write(KeyWriter& key, const std::vector<RowStep>& steps) {
  key.unsigned_number(steps.size());
  for (const RowStep& step : steps) {
    key.unsigned_number(static_cast<std::uint64_t>(step.opcode));
    key.unsigned_number(static_cast<std::uint64_t>(step.operation));
    key.unsigned_number(static_cast<std::uint64_t>(step.type));
    for (const RowOperand& operand : {step.a, step.b, step.c}) write(key, operand);
    key.number(step.array);
  }
}

std::string text_of(const RowOperand& operand) {
  switch (operand.kind) {
    case RowOperand::Kind::literal: return std::to_string(operand.number);
    case RowOperand::Kind::scalar: return "s" + std::to_string(operand.number);
    default: return "v" + std::to_string(operand.number);
  }
}

std::string text_of(const RowStep& step) {
  const std::string a = text_of(step.a), b = text_of(step.b), c = text_of(step.c);
  switch (step.opcode) {
    case RowOpcode::apply: return std::string(name_of(step.operation)) + "(" + a + ", " + b + ")";
    case RowOpcode::choose: return a + " ? " + b + " : " + c;
    case RowOpcode::wrap: return std::string(name_of(step.type)) + "(" + a + ")";
    case RowOpcode::offset: return a + " + " + b + " * " + c;
    case RowOpcode::load:
      return "*(" + std::string(name_of(step.type)) + "*)(array" + std::to_string(step.array) + " + " + a + ")";
    default: return "";
  }
}

/// One function's text.
class Text {
 public:
  std::string write(const RowSpec& spec) {
    out_ = (spec.name.empty() ? "rows" : spec.name) + ":\n";
    const std::size_t innermost = spec.innermost_loop();
    for (std::size_t n = 0; n < spec.steps.size(); ++n) {
      if (n == innermost && has_outside(spec)) {
        line("if (" + text_of(spec.steps[n].a) + " < " + text_of(spec.steps[n].b) + ")");
        ++depth_;
        add_parts(spec, /*are_outside=*/true);
      }
      add(spec.steps[n], n, "continue");
    }
    add_parts(spec, /*are_outside=*/false);
    return out_;
  }

 private:
  static bool has_outside(const RowSpec& spec) { return std::ranges::any_of(spec.parts, &RowPart::is_outside); }
  void add_parts(const RowSpec& spec, bool are_outside) {
    for (std::size_t p = 0; p < spec.parts.size(); ++p) {
      const RowPart& part = spec.parts[p];
      if (part.is_outside != are_outside) continue;
      const std::string end = "end" + std::to_string(p);
      for (std::size_t n = 0; n < part.steps.size(); ++n) add(part.steps[n], spec.first_value_of(p) + n, "goto " + end);
      std::string row;
      for (const RowOperand& column : part.columns) row += (row.empty() ? "" : ", ") + text_of(column);
      line("rows" + std::to_string(p) + "[n" + std::to_string(p) + "++] = {" + row + "};");
      if (std::ranges::any_of(part.steps, [](const RowStep& step) { return step.opcode == RowOpcode::filter; }))
        line(end + ":");
    }
  }
  void line(const std::string& text) { out_ += std::string(2 * depth_, ' ') + text + "\n"; }
  void add(const RowStep& step, std::size_t number, const std::string& otherwise) {
    const std::string a = text_of(step.a), b = text_of(step.b), value = "v" + std::to_string(number);
    if (step.opcode == RowOpcode::range) {
      line("for (" + value + " = " + a + "; " + value + " < " + b + "; " + value + " += " + text_of(step.c) + ")");
      ++depth_;
    } else if (step.opcode == RowOpcode::filter) {
      line("if (!" + a + ") " + otherwise + ";");
    } else if (step.opcode == RowOpcode::inside) {
      line("if (!(0 <= " + a + " && " + a + " < " + b + ")) leave;");
    } else {
      line(value + " = " + text_of(step) + ";");
    }
  }

  std::string out_;
  std::size_t depth_ = 1;
};

class Check {
 public:
  explicit Check(const RowSpec& spec) : spec_(spec) {
    add(spec.steps, "");
    const std::vector<bool> inside = known_;
    const std::size_t innermost = spec.innermost_loop();
    for (const RowPart& part : spec.parts) {
      require(!part.is_outside || innermost < spec.steps.size(), "a part outside of no loop");
      known_.assign(known_.size(), false);
      const auto readable = static_cast<std::ptrdiff_t>(part.is_outside ? innermost : inside.size());
      std::copy_n(inside.begin(), readable, known_.begin());
      add(part.steps, "part ");
      for (const RowOperand& column : part.columns) require(is_readable(column), "a column that nothing gives");
    }
    require(!spec.parts.empty(), "no parts");
  }

 private:
  void require(bool holds, const std::string& what) const {
    if (!holds) throw InternalError("KP-I120", "rows " + spec_.name + ": " + what);
  }
  bool is_readable(const RowOperand& operand) const {
    if (operand.kind == RowOperand::Kind::literal) return true;
    if (operand.number < 0) return false;
    return operand.kind == RowOperand::Kind::scalar ||
           (std::cmp_less(operand.number, known_.size()) && known_[static_cast<std::size_t>(operand.number)]);
  }
  void add(const std::vector<RowStep>& steps, const std::string& where) {
    for (const RowStep& step : steps) {
      const std::string at = where + "step " + std::to_string(known_.size()) + ": ";
      const RowOperand operands[] = {step.a, step.b, step.c};
      for (int k = 0; k < operands_of(step); ++k)
        require(is_readable(operands[k]), at + "an operand that nothing gives");
      require(step.opcode != RowOpcode::apply || is_index_operation(step.operation),
              at + "an operation that rows do not have");
      require(step.opcode != RowOpcode::load || step.array >= 0, at + "no array");
      require((step.opcode != RowOpcode::load && step.opcode != RowOpcode::wrap) || is_integer(step.type),
              at + "not an integer");
      require(step.opcode != RowOpcode::range || where.empty(), at + "a loop in a part");
      known_.push_back(has_value(step));
    }
  }

  const RowSpec& spec_;
  std::vector<bool> known_;  ///< values that may be read
};

}  // namespace

bool RowSpec::is_too_long() const {
  std::size_t count = steps.size();
  for (const RowPart& part : parts) count += part.steps.size();
  return count > 1024;
}

std::size_t RowSpec::column_count() const {
  std::size_t out = 0;
  for (const RowPart& part : parts) out += part.columns.size();
  return out;
}

std::string RowSpec::key() const {
  KeyWriter key;
  write(key, steps);
  key.unsigned_number(parts.size());
  for (const RowPart& part : parts) {
    write(key, part.steps);
    key.unsigned_number(part.is_outside ? 1 : 0);
    key.unsigned_number(part.columns.size());
    for (const RowOperand& column : part.columns) write(key, column);
  }
  return key.take();
}

std::string RowSpec::to_text() const { return Text().write(*this); }

void check(const RowSpec& spec) { Check{spec}; }

}  // namespace kplan::jit
