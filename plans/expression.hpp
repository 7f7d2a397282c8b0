#pragma once
// Expressions (language.md section 2): an immutable tree, used twice. The parser makes it with names and calls as
// they are written; the checker makes a second tree from it in which every name is resolved, every node has its
// type, casts are explicit, and calls have become operations. Trees are shared, never changed.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plans/arithmetic.hpp"

namespace kplan {

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

/// A piece of a source text: bytes [begin, end).
struct Span {
  std::uint32_t begin = 0, end = 0;
};

enum class ExprKind : std::uint8_t {
  constant,     ///< `value`; as parsed, a literal that takes the type of what it meets
  operation,    ///< `operation` on the operands
  logical_and,  ///< the right side is evaluated only when it matters
  logical_or,
  conditional,  ///< c ? a : b, one of a and b is evaluated
  // as parsed only
  name,  ///< `name`, with the subscripts of an element or slice
  call,  ///< `name` of a function or a type, with operands
  // as checked only
  parameter,  ///< parameter number `id`
  variable,   ///< where-bound variable number `id` of the statement
  rank,       ///< who evaluates
  size,       ///< of the statement's group
  element,    ///< element or slice of buffer number `id`: subscripts, field
  left,
  right,  ///< an operator's operands, perhaps a field of them
};

/// One subscript: an index `lo`, or a slice lo:hi:step, any part of which may be left out.
struct Subscript {
  ExprPtr lo, hi, step;
  bool is_slice = false;
};

struct Expr {
  ExprKind kind = ExprKind::constant;
  Operation operation = Operation::add;
  bool is_literal = false;  ///< a constant, or arithmetic of constants, that takes the type of what it meets
  bool is_index = false;    ///< checked: index arithmetic, overflow is an error
  int id = -1;
  int field = -1;  ///< checked: number of the record's field that is meant, -1: the whole element
  std::size_t element_bytes = 0, field_offset_bytes = 0;  ///< checked element: of the buffer's elements, of the field
  Span span;
  ScalarValue value;
  Scalar type = Scalar::i64;            ///< checked: of the value; meaningless where `record` is not null
  const ElementType* record = nullptr;  ///< checked: the value is a whole record of this type
  std::string name, field_name;
  std::vector<ExprPtr> operands;
  std::vector<Subscript> subscripts;
};

/// An operator that stands between its two operands.
struct InfixOperator {
  std::string_view symbol;
  int level;  ///< the larger, the tighter it binds
  ExprKind kind;
  Operation operation;
};
inline constexpr std::array<InfixOperator, 16> infix_operators{{
    {"||", 2, ExprKind::logical_or, Operation::bit_or},
    {"&&", 3, ExprKind::logical_and, Operation::bit_and},
    {"|", 4, ExprKind::operation, Operation::bit_or},
    {"^", 5, ExprKind::operation, Operation::bit_xor},
    {"&", 6, ExprKind::operation, Operation::bit_and},
    {"==", 7, ExprKind::operation, Operation::eq},
    {"!=", 7, ExprKind::operation, Operation::ne},
    {"<", 8, ExprKind::operation, Operation::lt},
    {"<=", 8, ExprKind::operation, Operation::le},
    {">", 8, ExprKind::operation, Operation::gt},
    {">=", 8, ExprKind::operation, Operation::ge},
    {"+", 9, ExprKind::operation, Operation::add},
    {"-", 9, ExprKind::operation, Operation::sub},
    {"*", 10, ExprKind::operation, Operation::mul},
    {"/", 10, ExprKind::operation, Operation::div},
    {"%", 10, ExprKind::operation, Operation::mod},
}};

/// Null where the expression's outermost operator is none.
const InfixOperator* infix_operator_of(const Expr& e);

/// The expression in the concrete syntax, with the parentheses it needs; for parsed trees.
std::string to_text(const Expr& e);

/// Calls f(node) for the node and all below it, subscripts included, parents first.
template <class F>
void visit(const Expr& e, const F& f) {
  f(e);
  for (const auto& o : e.operands) visit(*o, f);
  for (const auto& s : e.subscripts)
    for (const auto* part : {&s.lo, &s.hi, &s.step})
      if (*part) visit(**part, f);
}

inline std::size_t node_count(const Expr& e) {
  std::size_t out = 0;
  visit(e, [&](const Expr&) { ++out; });
  return out;
}

}  // namespace kplan
