#include "plans/expression.hpp"

#include <algorithm>

namespace kplan {
namespace {

// Binding strength of what an expression's outermost operator is; larger binds tighter.
constexpr int conditional_level = 1, primary_level = 13, unary_level = 12;

int level_of(const Expr& e) {
  if (const InfixOperator* infix = infix_operator_of(e)) return infix->level;
  return e.kind == ExprKind::conditional ? conditional_level
         : e.kind == ExprKind::operation ? unary_level
                                         : primary_level;
}

void print(const Expr& e, int least_level, std::string& out);

void print_list(const std::vector<ExprPtr>& list, std::string& out) {
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (k) out += ", ";
    print(*list[k], conditional_level, out);
  }
}

void print_subscripts(const std::vector<Subscript>& subscripts, std::string& out) {
  if (subscripts.empty()) return;
  out += '[';
  for (std::size_t k = 0; k < subscripts.size(); ++k) {
    const Subscript& s = subscripts[k];
    if (k) out += ", ";
    if (s.lo) print(*s.lo, conditional_level, out);
    if (!s.is_slice) continue;
    out += ':';
    if (s.hi) print(*s.hi, conditional_level, out);
    if (s.step) {
      out += ':';
      print(*s.step, conditional_level, out);
    }
  }
  out += ']';
}

void print_bare(const Expr& e, std::string& out) {
  if (const InfixOperator* infix = infix_operator_of(e)) {
    print(*e.operands[0], infix->level, out);
    out.append(" ").append(infix->symbol).append(" ");
    print(*e.operands[1], infix->level + 1, out);
    return;
  }
  switch (e.kind) {
    case ExprKind::constant: out += to_literal(e.value); return;
    case ExprKind::conditional:
      print(*e.operands[0], 2, out);
      out += " ? ";
      print(*e.operands[1], conditional_level, out);
      out += " : ";
      print(*e.operands[2], conditional_level, out);
      return;
    case ExprKind::operation:
      out += e.operation == Operation::neg ? "-" : e.operation == Operation::bit_not ? "~" : "!";
      print(*e.operands[0], unary_level, out);
      return;
    case ExprKind::call:
      out += e.name + "(";
      print_list(e.operands, out);
      out += ')';
      return;
    default:
      out += e.name;
      print_subscripts(e.subscripts, out);
      if (!e.field_name.empty()) out += "." + e.field_name;
  }
}

void print(const Expr& e, int least_level, std::string& out) {
  const bool needs_parentheses = level_of(e) < least_level;
  if (needs_parentheses) out += '(';
  print_bare(e, out);
  if (needs_parentheses) out += ')';
}

}  // namespace

const InfixOperator* infix_operator_of(const Expr& e) {
  const auto found = std::ranges::find_if(infix_operators, [&](const InfixOperator& i) {
    return i.kind == e.kind && (e.kind != ExprKind::operation || i.operation == e.operation);
  });
  return found == infix_operators.end() ? nullptr : &*found;
}

std::string to_text(const Expr& e) {
  std::string out;
  print(e, conditional_level, out);
  return out;
}

}  // namespace kplan
