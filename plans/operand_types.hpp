#pragma once
// What types the operands of checked expressions take, and the nodes that are made of them (language.md section 2):
// narrow integers are promoted, two values meet in a type that holds both, a literal takes the type of what it meets,
// arithmetic of literals is folded.

#include <utility>
#include <vector>

#include "plans/model.hpp"

namespace kplan {

ExprPtr constant_node(const ScalarValue& value, Span span, bool is_literal);

/// The type in which arithmetic of this one is done.
Scalar promoted(Scalar s);

/// Two values in the type in which they meet. Throws SyntaxFault (at `span`) where there is none.
std::pair<ExprPtr, ExprPtr> met(ExprPtr a, ExprPtr b, Span span);

/// An operation, as a constant where all operands are literals. Throws SyntaxFault where that has no value.
ExprPtr folded(ExprPtr e);

/// The same value in another type; the expression itself when it has it already.
ExprPtr converted(ExprPtr e, Scalar to);

/// A new node with its operands' span.
ExprPtr make_operation(Operation op, Scalar type, std::vector<ExprPtr> operands, Span span, bool is_index);

}  // namespace kplan
