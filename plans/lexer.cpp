#include "plans/lexer.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "plans/parser.hpp"

namespace kplan {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Longest first, so that the first match is the longest.
constexpr std::array<std::string_view, 36> symbols{
    "<<=", "...", "..", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "@", "(", ")", "[", "]", "{", "}",
    ",",   ":",   "?",  "|",  "^",  "&",  "<",  ">",  "+",  "-",  "*",  "/", "%", "!", "~", "=", ".", ";"};

Span span_of(std::size_t begin, std::size_t end) {
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

/// A number at `begin`: decimal or hexadecimal integer, or a decimal real. `0...9` is the integer 0 and an ellipsis.
Token lex_number(std::string_view text, std::size_t begin) {
  std::size_t p = begin;
  bool is_real_number = false;
  const bool is_hex = text.substr(p).starts_with("0x") || text.substr(p).starts_with("0X");
  if (is_hex) p += 2;
  const auto digits = [&] {
    while (p < text.size() && (is_digit(text[p]) || (is_hex && is_letter(text[p])))) ++p;
  };
  digits();
  if (!is_hex) {
    if (p < text.size() && text[p] == '.' && !text.substr(p).starts_with("..")) {
      is_real_number = true;
      ++p;
      digits();
    }
    if (p < text.size() && (text[p] == 'e' || text[p] == 'E')) {
      is_real_number = true;
      ++p;
      if (p < text.size() && (text[p] == '+' || text[p] == '-')) ++p;
      digits();
    }
    while (p < text.size() && is_letter(text[p])) ++p;  // a letter glued to a number is part of the mistake
  }
  Token token{
      is_real_number ? TokenKind::real : TokenKind::integer, text.substr(begin, p - begin), span_of(begin, p), {}};
  const char* from = token.text.data() + (is_hex ? 2 : 0);
  const char* to = token.text.data() + token.text.size();
  std::from_chars_result result{};
  if (is_real_number) {
    double v = 0;
    result = std::from_chars(from, to, v);
    token.value = ScalarValue::real(v);
  } else {
    std::int64_t v = 0;
    result = std::from_chars(from, to, v, is_hex ? 16 : 10);
    token.value = ScalarValue::integer(v);
  }
  if (result.ec == std::errc::result_out_of_range)
    throw SyntaxFault{"KP-S003", fmt::format("`{}` does not fit {}", token.text, is_real_number ? "f64" : "i64"),
                      token.span};
  if (result.ec != std::errc{} || result.ptr != to)
    throw SyntaxFault{"KP-S002", fmt::format("`{}` is not a number", token.text), token.span};
  return token;
}

}  // namespace

std::vector<Token> tokenize(std::string_view text) {
  if (text.size() > largest_text_bytes)
    throw SyntaxFault{
        "KP-S004", fmt::format("the text has {} bytes, at most {} are read", text.size(), largest_text_bytes), {}};
  std::vector<Token> out;
  std::size_t p = 0;
  while (p < text.size()) {
    const char c = text[p];
    if (is_space(c)) {
      ++p;
    } else if (is_letter(c)) {
      std::size_t q = p;
      while (q < text.size() && (is_letter(text[q]) || is_digit(text[q]))) ++q;
      out.push_back({TokenKind::identifier, text.substr(p, q - p), span_of(p, q), {}});
      p = q;
    } else if (is_digit(c)) {
      out.push_back(lex_number(text, p));
      p = out.back().span.end;
    } else {
      bool found = false;
      for (const std::string_view s : symbols) {
        if (!text.substr(p).starts_with(s)) continue;
        out.push_back({TokenKind::symbol, text.substr(p, s.size()), span_of(p, p + s.size()), {}});
        p += s.size();
        found = true;
        break;
      }
      if (!found) {
        const bool printable = c > ' ' && c < 127;
        throw SyntaxFault{"KP-S001",
                          printable ? fmt::format("`{}` means nothing here", c)
                                    : fmt::format("byte {:#04x} means nothing here; a statement is written in ASCII",
                                                  static_cast<unsigned>(static_cast<unsigned char>(c))),
                          span_of(p, p + 1)};
      }
    }
  }
  out.push_back({TokenKind::end, text.substr(text.size()), span_of(text.size(), text.size()), {}});
  return out;
}

}  // namespace kplan
