#pragma once
// Typing of expressions. Rules, C's where no value is lost:
//   - integers narrower than i32, and bool, become i32 in arithmetic; two integers meet in the smallest type that
//     holds both (i64 and u64 do not meet: a cast is asked for); an integer and a real meet in the real's type
//   - a literal takes the type of what it meets: 2.0 * x is f32 for an f32 x
//   - index arithmetic (where-lists, ranks, subscripts, shapes) is in i64, and its overflow is an error

#include <functional>

#include "plans/model.hpp"
#include "plans/parser.hpp"

namespace kplan {

/// What names mean where an expression stands, and what may stand there.
struct ExpressionScope {
  const PlanModel* plan = nullptr;
  const std::vector<Variable>* variables = nullptr;
  const ElementType* operand_type = nullptr;  ///< of left and right; null: they have no meaning
  bool allows_elements = true;                ///< elements of buffers
  bool allows_slices = false;
  bool allows_varying = true;      ///< varying parameters, and elements of buffers that are not fixed
  bool allows_other_names = true;  ///< than left and right: rank, size, parameters
  bool is_index = true;
  const char* where = "here";  ///< for messages
};

/// A mistake in an expression's meaning; like SyntaxFault, the caller knows the text.
using ExpressionFault = SyntaxFault;
[[noreturn]] inline void fail(const char* code, const std::string& message, Span span) {
  throw ExpressionFault{code, message, span};
}

/// The typed expression. Throws ExpressionFault.
ExprPtr check_expression(const Expr& parsed, const ExpressionScope& scope);

/// The typed expression converted as a cast would; an index expression to i64, a filter to boolean.
/// Throws ExpressionFault when a real stands where an integer is needed.
ExprPtr check_index(const Expr& parsed, const ExpressionScope& scope, std::string_view what);
ExprPtr check_filter(const Expr& parsed, const ExpressionScope& scope);

/// Whether other libraries call the number of ranks, or their set, by this name.
bool is_other_word_for_size(std::string_view name);

}  // namespace kplan
