#pragma once
// Statements as they are written (language.md section 2): what the parser makes of a text, and JSON's taken-apart
// form of the same. Nothing is resolved yet.

#include <string>
#include <string_view>
#include <vector>

#include "plans/expression.hpp"

namespace kplan {

enum class SetKind : std::uint8_t { named, range, listed };

/// A generator's set. A range has first, last (or end) and step; a named set is a group, or an integer buffer,
/// perhaps with one slice.
struct SetSyntax {
  SetKind kind = SetKind::named;
  ExprPtr first, last, step;      ///< range; step may be null
  bool is_half_open = false;      ///< range(a, b, s) against {a ... b by s}
  std::vector<ExprPtr> elements;  ///< listed
  ExprPtr named;                  ///< a `name` expression
  Span span;
};

enum class ClauseKind : std::uint8_t { generator, binding, filter };

struct ClauseSyntax {
  ClauseKind kind = ClauseKind::filter;
  std::vector<std::string> names;  ///< generator: one or more, binding: one
  SetSyntax set;
  ExprPtr expression;  ///< binding, filter
  Span span;
};

struct ReductionSyntax {
  ExprPtr place, receiver, value, sender;
  std::string op = "assign";
  Span span;
  Span operator_span;
};

struct StatementSyntax {
  std::vector<ReductionSyntax> reductions;
  std::vector<ClauseSyntax> clauses;
};

/// How many operators and operands the statement has.
std::size_t node_count(const StatementSyntax& s);

/// The statement in the concrete syntax; parsing it gives the same statement again.
std::string to_text(const StatementSyntax& s);
std::string to_text(const ReductionSyntax& r);
std::string to_text(const ClauseSyntax& c);
std::string to_text(const SetSyntax& s);

}  // namespace kplan
