// How it works: tokens first (lexer.cpp), then recursive descent with one function a level of the grammar; binary
// operators by precedence climbing. Each node knows its span in the text and its height, which is limited.
#include "plans/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "plans/lexer.hpp"

namespace kplan {
namespace {

constexpr std::array reserved_words{"where",     "in",        "by",       "range", "true", "false", "rank",  "size",
                                    "world",     "left",      "right",    "min",   "max",  "abs",   "clamp", "select",
                                    "floor_div", "floor_mod", "ceil_div", "shl",   "shr",  "log2",  "pow2",  "popcount",
                                    "sqrt",      "bool",      "i8",       "i16",   "i32",  "i64",   "u8",    "u16",
                                    "u32",       "u64",       "f32",      "f64",   "c64",  "c128"};

/// A parsed subtree and its height.
struct Parsed {
  ExprPtr expr;
  int depth = 1;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(tokenize(text)) {}

  StatementSyntax statement() {
    StatementSyntax out;
    do out.reductions.push_back(reduction());
    while (accept(","));
    if (accept_word("where")) {
      do out.clauses.push_back(clause());
      while (accept(","));
    }
    expect_end();
    return out;
  }

  ExprPtr whole_expression() {
    ExprPtr out = expression();
    expect_end();
    return out;
  }

  SetSyntax whole_set() {
    SetSyntax out = set();
    expect_end();
    return out;
  }

 private:
  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& t = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool is_symbol(std::string_view s, std::size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::symbol && peek(ahead).text == s;
  }
  bool is_word(std::string_view s, std::size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::identifier && peek(ahead).text == s;
  }
  bool accept(std::string_view s) { return is_symbol(s) && (take(), true); }
  bool accept_word(std::string_view s) { return is_word(s) && (take(), true); }

  std::string found() const {
    return peek().kind == TokenKind::end ? std::string("the text ends") : fmt::format("`{}` stands", peek().text);
  }
  [[noreturn]] void fail(const std::string& code, const std::string& message) const {
    throw SyntaxFault{code, message, peek().span};
  }
  void expect(std::string_view s, std::string_view after) {
    if (accept(s)) return;
    std::string hint;
    if (is_symbol("<<") || is_symbol(">>")) hint = "; a shift is written shl(a, b) or shr(a, b)";
    if (is_symbol("=") && s == "@") hint = "; assignment is `<<=`";
    if (is_symbol("..")) hint = "; a range is written {first ... last}";
    if (const std::string word = word_for_symbol(); !word.empty()) hint = "; " + word;
    fail("KP-S010", fmt::format("`{}` is missing after {}: {} here{}", s, after, found(), hint));
  }
  /// What other languages spell out, where it makes the text end in the middle.
  std::string word_for_symbol() const {
    if (is_word("and")) return "it is written `&&`";
    if (is_word("or")) return "it is written `||`";
    if (at_ > 0 && tokens_[at_ - 1].text == "not") return "`not` is written `!`";
    return "";
  }
  void expect_end() {
    if (peek().kind == TokenKind::end) return;
    if (is_symbol(">>")) fail("KP-S011", "`>>` is no operator; a shift is written shr(a, b)");
    if (is_symbol("<<")) fail("KP-S011", "`<<` cannot stand here; a shift is written shl(a, b)");
    if (is_symbol("=")) fail("KP-S011", "`=` cannot stand here; equality is written `==`");
    const std::string word = word_for_symbol();
    fail("KP-S011", fmt::format("`{}` cannot stand here; {}", peek().text,
                                word.empty() ? "a comma or `where` may be missing before it" : word));
  }

  std::uint32_t previous_end() const { return at_ ? tokens_[at_ - 1].span.end : 0; }

  ReductionSyntax reduction() {
    ReductionSyntax out;
    out.span.begin = peek().span.begin;
    out.place = expression();
    expect("@", "the place");
    out.receiver = expression();
    out.operator_span = peek().span;
    if (!accept("<<=")) {
      if (!accept("<<"))
        fail("KP-S012", fmt::format("`<<=` or `<< operator <<` is missing after the receiver: {} here{}", found(),
                                    is_symbol("=") ? "; assignment is `<<=`" : ""));
      if (peek().kind != TokenKind::identifier)
        fail("KP-S013", fmt::format("the name of an operator is missing after `<<`: {} here", found()));
      out.operator_span = peek().span;
      out.op = std::string(take().text);
      expect("<<", "the operator");
    }
    out.value = expression();
    expect("@", "the value");
    out.sender = expression();
    out.span.end = previous_end();
    return out;
  }

  /// Whether names and then `in` stand here: i, j in ...
  bool is_generator() {
    // What is found once holds for all names of the list, or a list of filters would be read once for each of them.
    if (at_ < no_generator_before_) return false;
    std::size_t k = 0;
    for (; peek(k).kind == TokenKind::identifier && !is_word("true", k) && !is_word("false", k); k += 2) {
      if (is_word("in", k + 1)) return true;
      if (!is_symbol(",", k + 1)) break;
    }
    no_generator_before_ = at_ + k;
    return false;
  }

  ClauseSyntax clause() {
    ClauseSyntax out;
    out.span.begin = peek().span.begin;
    if (is_generator()) {
      out.kind = ClauseKind::generator;
      do out.names.push_back(declared_name());
      while (accept(","));
      take();  // in
      out.set = set();
    } else if (peek().kind == TokenKind::identifier && is_symbol("=", 1)) {
      out.kind = ClauseKind::binding;
      out.names.push_back(declared_name());
      take();  // =
      out.expression = expression();
    } else {
      out.kind = ClauseKind::filter;
      out.expression = expression();
    }
    out.span.end = previous_end();
    return out;
  }

  std::string declared_name() {
    if (is_reserved(peek().text))
      fail("KP-S014",
           fmt::format("`{}` has a meaning of its own and cannot be bound; choose another name", peek().text));
    return std::string(take().text);
  }

  SetSyntax set() {
    SetSyntax out;
    out.span.begin = peek().span.begin;
    if (accept("{")) {
      braced_set(out);
      expect("}", "the set");
    } else if (is_word("range") && is_symbol("(", 1)) {
      take();
      take();
      half_open_range(out);
      expect(")", "the range");
    } else if (peek().kind == TokenKind::identifier) {
      out.kind = SetKind::named;
      out.named = postfix().expr;
      if (out.named->kind != ExprKind::name || !out.named->field_name.empty())
        throw SyntaxFault{"KP-S015", "a set is a group, {first ... last}, range(...), {a, b, ...} or an integer buffer",
                          out.named->span};
    } else {
      fail("KP-S015",
           fmt::format("a set is a group, {{first ... last}}, range(...), {{a, b, ...}} or an integer buffer; {} here",
                       found()));
    }
    out.span.end = previous_end();
    return out;
  }

  void braced_set(SetSyntax& out) {
    if (is_symbol("}")) fail("KP-S016", "an empty set binds nothing; write a filter that is false instead");
    ExprPtr first = expression();
    if (!accept("...")) {
      out.kind = SetKind::listed;
      out.elements.push_back(std::move(first));
      while (accept(",")) out.elements.push_back(expression());
      return;
    }
    out.kind = SetKind::range;
    out.first = std::move(first);
    out.last = expression();
    if (accept_word("by")) out.step = expression();
  }

  void half_open_range(SetSyntax& out) {
    out.kind = SetKind::range;
    out.is_half_open = true;
    std::vector<ExprPtr> parts{expression()};
    while (accept(",")) parts.push_back(expression());
    if (parts.size() > 3)
      throw SyntaxFault{"KP-S017", fmt::format("range takes one to three arguments, not {}", parts.size()),
                        parts[3]->span};
    if (parts.size() == 1) {
      Expr zero;
      zero.is_literal = true;
      zero.value = ScalarValue::integer(0);
      zero.span = parts[0]->span;
      parts.insert(parts.begin(), std::make_shared<const Expr>(std::move(zero)));
    }
    out.first = parts[0];
    out.last = parts[1];
    if (parts.size() == 3) out.step = parts[2];
  }

  // Expressions. `nesting_` bounds the parser's own stack, `depth` the height of the tree that others walk.

  ExprPtr expression() { return conditional().expr; }

  Parsed finish(Expr e, int depth) {
    if (depth > largest_depth)
      throw SyntaxFault{"KP-S005",
                        fmt::format("the expression is nested deeper than {} levels; in a chain of operators each is a "
                                    "level, and parentheses around its halves help",
                                    largest_depth),
                        e.span};
    if (++node_count_ > largest_node_count)
      throw SyntaxFault{"KP-S006", fmt::format("the text has more than {} operators and operands", largest_node_count),
                        e.span};
    return {std::make_shared<const Expr>(std::move(e)), depth};
  }

  struct Nesting {
    explicit Nesting(Parser& parser) : p(parser) {
      if (++p.nesting_ > largest_depth)
        throw SyntaxFault{"KP-S005", fmt::format("the expression is nested deeper than {} levels", largest_depth),
                          p.peek().span};
    }
    ~Nesting() { --p.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Parser& p;
  };

  Parsed conditional() {
    const Nesting nesting(*this);
    const std::uint32_t begin = peek().span.begin;  // perhaps of a parenthesis, which is no node
    Parsed condition = binary(2);
    if (!accept("?")) return condition;
    Parsed yes = conditional();
    expect(":", "the first choice of `?`");
    Parsed no = conditional();
    Expr e;
    e.kind = ExprKind::conditional;
    e.span = {begin, previous_end()};
    e.operands = {condition.expr, yes.expr, no.expr};
    return finish(std::move(e), 1 + std::max({condition.depth, yes.depth, no.depth}));
  }

  Parsed binary(int least_level) {
    const std::uint32_t begin = peek().span.begin;
    Parsed left = unary();
    for (;;) {
      const auto op =
          std::ranges::find_if(infix_operators, [&](const InfixOperator& i) { return is_symbol(i.symbol); });
      if (op == infix_operators.end() || op->level < least_level) return left;
      take();
      Parsed right = binary(op->level + 1);
      Expr e;
      e.kind = op->kind;
      e.operation = op->operation;
      e.span = {begin, previous_end()};
      e.operands = {left.expr, right.expr};
      left = finish(std::move(e), 1 + std::max(left.depth, right.depth));
    }
  }

  Parsed unary() {
    Operation operation;
    if (is_symbol("-")) operation = Operation::neg;
    else if (is_symbol("!")) operation = Operation::logical_not;
    else if (is_symbol("~")) operation = Operation::bit_not;
    else return postfix();
    const Nesting nesting(*this);
    const std::uint32_t begin = take().span.begin;
    Parsed operand = unary();
    Expr e;
    e.kind = ExprKind::operation;
    e.operation = operation;
    e.span = {begin, previous_end()};
    e.operands = {operand.expr};
    return finish(std::move(e), 1 + operand.depth);
  }

  Parsed postfix() {
    const Token& t = peek();
    if (t.kind == TokenKind::integer || t.kind == TokenKind::real) return literal(take().value);
    if (is_symbol("(")) {
      take();
      Parsed inner = conditional();
      expect(")", "the expression in parentheses");
      return inner;
    }
    if (t.kind != TokenKind::identifier) fail("KP-S018", fmt::format("an expression is missing: {} here", found()));
    if (is_word("true") || is_word("false")) return literal(ScalarValue::boolean(take().text == "true"));
    if (is_word("where") || is_word("in") || is_word("by")) {
      const std::string_view next = tokens_[at_ + 1].text;
      fail("KP-S018", next == "[" || next == "@"
                          ? fmt::format("`{}` has a meaning of its own and cannot be the name of a buffer", t.text)
                          : fmt::format("an expression is missing before `{}`", t.text));
    }
    take();
    return is_symbol("(") ? call(t) : reference(t);
  }

  Parsed literal(ScalarValue value) {
    Expr e;
    e.is_literal = value.type != Scalar::boolean;
    e.value = value;
    e.span = tokens_[at_ - 1].span;
    return finish(std::move(e), 1);
  }

  Parsed call(const Token& name) {
    Expr e;
    e.kind = ExprKind::call;
    e.name = std::string(name.text);
    int depth = 0;
    take();  // (
    if (!is_symbol(")")) {
      do {
        Parsed argument = conditional();
        depth = std::max(depth, argument.depth);
        e.operands.push_back(argument.expr);
      } while (accept(","));
    }
    expect(")", "the arguments");
    e.span = {name.span.begin, previous_end()};
    return finish(std::move(e), 1 + depth);
  }

  Parsed reference(const Token& name) {
    Expr e;
    e.kind = ExprKind::name;
    e.name = std::string(name.text);
    int depth = 0;
    while (accept("[")) {
      do e.subscripts.push_back(subscript(depth));
      while (accept(","));
      expect("]", "the subscripts");
    }
    if (accept(".")) {
      if (peek().kind != TokenKind::identifier)
        fail("KP-S019", fmt::format("the name of a field is missing after `.`: {} here", found()));
      e.field_name = std::string(take().text);
      if (is_symbol("[") || is_symbol(".")) fail("KP-S019", "a field is a scalar: it has no elements and no fields");
    }
    e.span = {name.span.begin, previous_end()};
    return finish(std::move(e), 1 + depth);
  }

  Subscript subscript(int& depth) {
    const auto part = [&] {
      Parsed p = conditional();
      depth = std::max(depth, p.depth);
      return p.expr;
    };
    const auto ends = [&] { return is_symbol(":") || is_symbol(",") || is_symbol("]"); };
    Subscript out;
    if (!is_symbol(":")) out.lo = part();
    if (!accept(":")) return out;
    out.is_slice = true;
    if (!ends()) out.hi = part();
    if (accept(":") && !ends()) out.step = part();
    return out;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t no_generator_before_ = 0;  ///< tokens
  int nesting_ = 0;
  int node_count_ = 0;
};

}  // namespace

StatementSyntax parse_statement(std::string_view text) { return Parser(text).statement(); }
ExprPtr parse_expression(std::string_view text) { return Parser(text).whole_expression(); }
SetSyntax parse_set(std::string_view text) { return Parser(text).whole_set(); }

bool is_reserved(std::string_view word) {
  return std::ranges::any_of(reserved_words, [&](const char* w) { return word == w; });
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  return std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace kplan
