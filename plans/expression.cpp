#include "plans/expression.hpp"

#include <array>

namespace kplan {
namespace {

// Binding strength of what an expression's outermost operator is; larger binds tighter.
constexpr int conditional_level = 1, primary_level = 13, unary_level = 12;

struct Infix {
  Operation operation;
  const char* symbol;
  int level;
};
constexpr std::array<Infix, 14> infixes{{{Operation::bit_or, "|", 4},
                                         {Operation::bit_xor, "^", 5},
                                         {Operation::bit_and, "&", 6},
                                         {Operation::eq, "==", 7},
                                         {Operation::ne, "!=", 7},
                                         {Operation::lt, "<", 8},
                                         {Operation::le, "<=", 8},
                                         {Operation::gt, ">", 8},
                                         {Operation::ge, ">=", 8},
                                         {Operation::add, "+", 9},
                                         {Operation::sub, "-", 9},
                                         {Operation::mul, "*", 10},
                                         {Operation::div, "/", 10},
                                         {Operation::mod, "%", 10}}};

const Infix* infix_of(const Expr& e) {
  if (e.kind == ExprKind::operation)
    for (const auto& i : infixes)
      if (i.operation == e.operation) return &i;
  return nullptr;
}

int level_of(const Expr& e) {
  switch (e.kind) {
    case ExprKind::conditional: return conditional_level;
    case ExprKind::logical_or: return 2;
    case ExprKind::logical_and: return 3;
    case ExprKind::operation: {
      const Infix* i = infix_of(e);
      return i ? i->level : unary_level;
    }
    default: return primary_level;
  }
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
  const auto binary = [&](const char* symbol, int level) {
    print(*e.operands[0], level, out);
    out.append(" ").append(symbol).append(" ");
    print(*e.operands[1], level + 1, out);
  };
  switch (e.kind) {
    case ExprKind::constant: out += to_literal(e.value); return;
    case ExprKind::conditional:
      print(*e.operands[0], 2, out);
      out += " ? ";
      print(*e.operands[1], conditional_level, out);
      out += " : ";
      print(*e.operands[2], conditional_level, out);
      return;
    case ExprKind::logical_or: return binary("||", 2);
    case ExprKind::logical_and: return binary("&&", 3);
    case ExprKind::operation:
      if (const Infix* i = infix_of(e)) return binary(i->symbol, i->level);
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

std::string to_text(const Expr& e) {
  std::string out;
  print(e, conditional_level, out);
  return out;
}

}  // namespace kplan
