#pragma once
// The concrete syntax of language.md section 2, read by recursive descent. Texts come from outside: their length,
// the depth of their expressions and the number of nodes are limited, so that reading and everything after it
// takes bounded time, memory and stack.

#include <string_view>

#include "plans/statement_syntax.hpp"

namespace kplan {

inline constexpr std::size_t largest_text_bytes = 64 * 1024;
inline constexpr int largest_depth = 200;
inline constexpr int largest_node_count = 20'000;
/// Of all statements of a plan together; of its shapes and groups; and of its operators where they are used.
inline constexpr std::size_t largest_plan_node_count = 250'000;

/// A mistake at a place of a text; whoever knows where the text stands makes an error for the user of it.
struct SyntaxFault {
  std::string code;
  std::string message;
  Span span;
};

/// Throws SyntaxFault.
StatementSyntax parse_statement(std::string_view text);
/// One expression and nothing after it. Throws SyntaxFault.
ExprPtr parse_expression(std::string_view text);
/// A generator's set and nothing after it. Throws SyntaxFault.
SetSyntax parse_set(std::string_view text);

/// Whether the text is a name that a plan may declare: a C identifier. Throws nothing.
bool is_identifier(std::string_view text);
/// Words with a meaning of their own, which plans cannot declare: `where`, `rank`, `world`, types, functions.
bool is_reserved(std::string_view word);

}  // namespace kplan
