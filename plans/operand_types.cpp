#include "plans/operand_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "plans/evaluate.hpp"
#include "plans/parser.hpp"

namespace kplan {
namespace {

[[noreturn]] void fail(const char* code, const std::string& message, Span span) {
  throw SyntaxFault{code, message, span};
}

/// The type in which two values meet, or nothing.
std::optional<Scalar> meet(Scalar a, Scalar b) {
  a = promoted(a);
  b = promoted(b);
  if (a == b) return a;
  if (is_integer(a) && is_integer(b)) {
    if (is_signed_integer(a) == is_signed_integer(b)) return size_of(a) > size_of(b) ? a : b;
    const Scalar u = is_unsigned_integer(a) ? a : b;
    return u == Scalar::u32 ? std::optional(Scalar::i64) : std::nullopt;
  }
  if (is_integer(a)) return b;
  if (is_integer(b)) return a;
  const bool wide = size_of(part_of(a)) == 8 || size_of(part_of(b)) == 8;
  if (is_complex(a) || is_complex(b)) return wide ? Scalar::c128 : Scalar::c64;
  return wide ? Scalar::f64 : Scalar::f32;
}

/// A literal in the type of what it meets: where it fits, else as it is.
ExprPtr adapted(ExprPtr literal, Scalar other) {
  Scalar to = promoted(other);
  if (is_real(literal->type) && is_integer(to)) to = Scalar::f64;
  if (is_integer(literal->type) && is_integer(to)) {
    const std::int64_t v = literal->value.as_integer();
    const ScalarValue narrowed = convert(literal->value, to);
    const bool fits = narrowed.as_integer() == v && (v >= 0 || is_signed_integer(to));
    if (!fits) return constant_node(literal->value, literal->span, false);
  }
  return constant_node(convert(literal->value, to), literal->span, false);
}

}  // namespace

ExprPtr constant_node(const ScalarValue& value, Span span, bool is_literal) {
  Expr e;
  e.kind = ExprKind::constant;
  e.value = value;
  e.type = value.type;
  e.is_literal = is_literal;
  e.span = span;
  return std::make_shared<const Expr>(std::move(e));
}

Scalar promoted(Scalar s) { return s == Scalar::boolean || (is_integer(s) && size_of(s) < 4) ? Scalar::i32 : s; }

std::pair<ExprPtr, ExprPtr> met(ExprPtr a, ExprPtr b, Span span) {
  if (a->is_literal && !b->is_literal) a = adapted(std::move(a), b->type);
  else if (b->is_literal && !a->is_literal) b = adapted(std::move(b), a->type);
  const auto type = a->type == Scalar::boolean && b->type == Scalar::boolean ? Scalar::boolean : meet(a->type, b->type);
  if (!type)
    fail("KP-P012",
         fmt::format("{} and {} have no common type without loss; cast one of them: i64(x) or u64(x)", name_of(a->type),
                     name_of(b->type)),
         span);
  const bool is_literal = a->is_literal && b->is_literal;
  a = converted(a, *type);
  b = converted(b, *type);
  if (is_literal) {
    a = constant_node(a->value, a->span, true);
    b = constant_node(b->value, b->span, true);
  }
  return {a, b};
}

ExprPtr folded(ExprPtr e) {
  if (!std::ranges::all_of(e->operands, [](const ExprPtr& o) { return o->is_literal; })) return e;
  ScalarValue out;
  const ScalarValue& a = e->operands[0]->value;
  const ScalarValue& b = e->operands.back()->value;
  // Of constants, shifts and logarithms alone differ between index arithmetic and the arithmetic of values.
  const bool is_lenient =
      !e->is_index && (is_shift(e->operation) || e->operation == Operation::log2 || e->operation == Operation::pow2);
  if (is_integer(a.type) && !is_comparison(e->operation) && !is_lenient) {
    try {
      return constant_node(ScalarValue::integer(apply_index(e->operation, a.as_integer(), b.as_integer(), e->span)),
                           e->span, true);
    } catch (const EvaluationFault& f) {
      if (f.code == "KP-R001") fail("KP-P013", f.message, e->span);
      if (f.code == "KP-R003") fail("KP-S003", "this constant does not fit i64", e->span);
      throw SyntaxFault{f.code, f.message + "; " + f.advice, f.span};
    }
  }
  if (!apply(e->operation, e->type, a, b, out)) fail("KP-P013", "the divisor is zero", e->span);
  return constant_node(out, e->span, e->type != Scalar::boolean);
}

ExprPtr make_operation(Operation op, Scalar type, std::vector<ExprPtr> operands, Span span, bool is_index) {
  Expr e;
  e.kind = ExprKind::operation;
  e.operation = op;
  e.type = type;
  e.span = span;
  e.is_index = is_index;
  e.operands = std::move(operands);
  return std::make_shared<const Expr>(std::move(e));
}

ExprPtr converted(ExprPtr e, Scalar to) {
  if (e->type == to) return e;
  if (e->kind == ExprKind::constant) return constant_node(convert(e->value, to), e->span, false);
  const Span span = e->span;
  const bool is_index = e->is_index;
  return make_operation(Operation::convert, to, {std::move(e)}, span, is_index);
}

}  // namespace kplan
