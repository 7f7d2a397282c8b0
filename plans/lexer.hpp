#pragma once
// Tokens of the concrete syntax.

#include <string_view>
#include <vector>

#include "plans/expression.hpp"

namespace kplan {

enum class TokenKind : std::uint8_t { end, identifier, integer, real, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  ///< into the text that was lexed; empty at the end
  Span span;
  ScalarValue value;  ///< integer, real
};

/// The tokens of the text, the last of kind `end`. Throws SyntaxFault.
std::vector<Token> tokenize(std::string_view text);

}  // namespace kplan
