// The concrete syntax (language.md section 2): what is read, how tightly operators bind, that printing is reading
// backwards, and the limits.
#include "plans/parser.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "plans/statement_syntax.hpp"

namespace kplan::test {
namespace {

/// The tree with all its parentheses: `(a+(b*c))`.
std::string tree(const Expr& e) {
  static const char* const symbols[] = {"convert", "-",        "~",   "!",   "+",  "-", "*", "/",
                                        "%",       "ceil_div", "min", "max", "&",  "|", "^", "shl",
                                        "shr",     "==",       "!=",  "<",   "<=", ">", ">="};
  const auto list = [](const std::vector<ExprPtr>& items) {
    std::string out;
    for (const auto& i : items) out += (out.empty() ? "" : ",") + tree(*i);
    return out;
  };
  switch (e.kind) {
    case ExprKind::constant: return to_text(e.value);
    case ExprKind::operation:
      if (e.operands.size() == 1)
        return std::string("(") + symbols[static_cast<int>(e.operation)] + tree(*e.operands[0]) + ")";
      return "(" + tree(*e.operands[0]) + symbols[static_cast<int>(e.operation)] + tree(*e.operands[1]) + ")";
    case ExprKind::logical_and: return "(" + tree(*e.operands[0]) + "&&" + tree(*e.operands[1]) + ")";
    case ExprKind::logical_or: return "(" + tree(*e.operands[0]) + "||" + tree(*e.operands[1]) + ")";
    case ExprKind::conditional:
      return "(" + tree(*e.operands[0]) + "?" + tree(*e.operands[1]) + ":" + tree(*e.operands[2]) + ")";
    case ExprKind::call: return e.name + "(" + list(e.operands) + ")";
    default: break;
  }
  std::string out = e.name;
  for (const Subscript& s : e.subscripts) {
    out += "[" + (s.lo ? tree(*s.lo) : "");
    if (s.is_slice) out += ":" + (s.hi ? tree(*s.hi) : "") + (s.step ? ":" + tree(*s.step) : "");
    out += "]";
  }
  return out + (e.field_name.empty() ? "" : "." + e.field_name);
}
std::string tree(const std::string& text) { return tree(*parse_expression(text)); }

template <class Parse>
std::string code_of(const std::string& text, Parse parse) {
  try {
    parse(text);
  } catch (const SyntaxFault& f) {
    CHECK(f.span.begin <= f.span.end);
    CHECK(f.span.end <= text.size());
    return f.code;
  }
  return "";
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int k = 0; k < count; ++k) out += text;
  return out;
}

}  // namespace

TEST_CASE("the paper's statements read as they stand", "[plans][parser]") {
  const StatementSyntax exchange = parse_statement("A[j]@i <<= B[i]@j where i in world, j in world, i % 2 == 0");
  REQUIRE(exchange.reductions.size() == 1);
  CHECK(tree(*exchange.reductions[0].place) == "A[j]");
  CHECK(tree(*exchange.reductions[0].receiver) == "i");
  CHECK(exchange.reductions[0].op == "assign");
  CHECK(tree(*exchange.reductions[0].value) == "B[i]");
  CHECK(tree(*exchange.reductions[0].sender) == "j");
  REQUIRE(exchange.clauses.size() == 3);
  CHECK(exchange.clauses[0].kind == ClauseKind::generator);
  CHECK(exchange.clauses[0].names == std::vector<std::string>{"i"});
  CHECK(exchange.clauses[0].set.kind == SetKind::named);
  CHECK(tree(*exchange.clauses[0].set.named) == "world");
  CHECK(exchange.clauses[2].kind == ClauseKind::filter);
  CHECK(tree(*exchange.clauses[2].expression) == "((i%2)==0)");

  const StatementSyntax broadcast = parse_statement("b@recv_rank <<= a@send_rank");
  CHECK(broadcast.clauses.empty());
  CHECK(tree(*broadcast.reductions[0].sender) == "send_rank");

  const StatementSyntax strided =
      parse_statement("A[k]@i <<= B[k]@j where i in world, j in world, k in {0 ... 10}, k % stride == 0");
  REQUIRE(strided.clauses.size() == 4);
  CHECK(strided.clauses[2].set.kind == SetKind::range);
  CHECK(tree(*strided.clauses[2].set.first) == "0");
  CHECK(tree(*strided.clauses[2].set.last) == "10");
  CHECK_FALSE(strided.clauses[2].set.is_half_open);
  CHECK_FALSE(strided.clauses[2].set.step);

  const StatementSyntax sum =
      parse_statement("rval@r << sum << sbuff[r]@s where s in world, r in world, (s % 2) == (r % 2)");
  CHECK(sum.reductions[0].op == "sum");
  CHECK(tree(*sum.clauses[2].expression) == "((s%2)==(r%2))");

  const StatementSyntax gather =
      parse_statement("rb[displs[s] : displs[s]+counts[s]]@r <<= sb[0:counts[s]]@s where s in world, r in world");
  CHECK(tree(*gather.reductions[0].place) == "rb[displs[s]:(displs[s]+counts[s])]");
  CHECK(tree(*gather.reductions[0].value) == "sb[0:counts[s]]");
}

TEST_CASE("operators bind as in C", "[plans][parser]") {
  CHECK(tree("a + b * c - d") == "((a+(b*c))-d)");
  CHECK(tree("a - b - c") == "((a-b)-c)");
  CHECK(tree("a / b % c * d") == "(((a/b)%c)*d)");
  CHECK(tree("-a * ~b") == "((-a)*(~b))");
  CHECK(tree("- -a") == "(-(-a))");
  CHECK(tree("!a == b") == "((!a)==b)");
  CHECK(tree("a == b < c") == "(a==(b<c))");
  CHECK(tree("a & b == c") == "(a&(b==c))");
  CHECK(tree("a | b ^ c & d") == "(a|(b^(c&d)))");
  CHECK(tree("a || b && c | d") == "(a||(b&&(c|d)))");
  CHECK(tree("a && b || c && d") == "((a&&b)||(c&&d))");
  CHECK(tree("a ? b : c ? d : e") == "(a?b:(c?d:e))");
  CHECK(tree("a || b ? c : d") == "((a||b)?c:d)");
  CHECK(tree("a ? b ? c : d : e") == "(a?(b?c:d):e)");
  CHECK(tree("(a + b) * c") == "((a+b)*c)");
  CHECK(tree("a <= b >= c != d > e") == "(((a<=b)>=c)!=(d>e))");
  CHECK(tree("min(a, b + 1)") == "min(a,(b+1))");
  CHECK(tree("f32(x) / 2") == "(f32(x)/2)");
}

TEST_CASE("`@` binds looser than every operator of an expression, and `<<=` looser than `@`", "[plans][parser]") {
  const StatementSyntax s = parse_statement("A[i]@a ? b : c || d <<= e + f & g@h == 1");
  CHECK(tree(*s.reductions[0].receiver) == "(a?b:(c||d))");
  CHECK(tree(*s.reductions[0].value) == "((e+f)&g)");
  CHECK(tree(*s.reductions[0].sender) == "(h==1)");
}

TEST_CASE("subscripts are written with commas or with more brackets", "[plans][parser]") {
  CHECK(tree("A[i,j]") == "A[i][j]");
  CHECK(tree("A[i][j]") == "A[i][j]");
  CHECK(tree("A[i, 0:n][:]") == "A[i][0:n][:]");
  CHECK(to_text(*parse_expression("A[i][j][k]")) == "A[i, j, k]");
  CHECK(tree("A[0].x") == "A[0].x");
  CHECK(tree("A[p].x + b.y") == "(A[p].x+b.y)");
}

TEST_CASE("every part of a slice may be left out", "[plans][parser]") {
  CHECK(tree("A[lo:hi]") == "A[lo:hi]");
  CHECK(tree("A[lo:hi:step]") == "A[lo:hi:step]");
  CHECK(tree("A[:]") == "A[:]");
  CHECK(tree("A[:hi]") == "A[:hi]");
  CHECK(tree("A[lo:]") == "A[lo:]");
  CHECK(tree("A[::2]") == "A[::2]");
  CHECK(tree("A[lo::2]") == "A[lo::2]");
  CHECK(tree("A[a:b:]") == "A[a:b]");
  CHECK(tree("A[c ? a : b : d]") == "A[(c?a:b):d]");
}

TEST_CASE("sets are groups, ranges, lists and buffers", "[plans][parser]") {
  CHECK(parse_set("world").kind == SetKind::named);
  const SetSyntax by = parse_set("{a + 1 ... b by -2}");
  CHECK(by.kind == SetKind::range);
  CHECK(tree(*by.step) == "(-2)");
  const SetSyntax tight = parse_set("{0...9}");
  CHECK(tree(*tight.first) == "0");
  CHECK(tree(*tight.last) == "9");
  CHECK(tree(*parse_set("{n...m}").last) == "m");
  CHECK(tree(*parse_set("{0x1f...0x20}").first) == "31");
  const SetSyntax half_open = parse_set("range(n)");
  CHECK(half_open.is_half_open);
  CHECK(tree(*half_open.first) == "0");
  CHECK(tree(*half_open.last) == "n");
  CHECK_FALSE(half_open.step);
  CHECK(tree(*parse_set("range(a, b)").first) == "a");
  CHECK(tree(*parse_set("range(a, b, c)").step) == "c");
  const SetSyntax listed = parse_set("{1, i, 2 * j}");
  CHECK(listed.kind == SetKind::listed);
  CHECK(listed.elements.size() == 3);
  CHECK(parse_set("{7}").elements.size() == 1);
  CHECK(tree(*parse_set("ghosts[0:n]").named) == "ghosts[0:n]");
  CHECK(tree(*parse_set("range").named) == "range");  // without an argument list it is a name like any other
}

TEST_CASE("several names before `in` share its set, and a name alone is a filter", "[plans][parser]") {
  const auto clauses = parse_statement("a@0 <<= b@0 where i, j in world, k = i + 1, flag && x, (flag), k == 2").clauses;
  REQUIRE(clauses.size() == 5);
  CHECK(clauses[0].names == std::vector<std::string>{"i", "j"});
  CHECK(clauses[1].kind == ClauseKind::binding);
  CHECK(clauses[1].names == std::vector<std::string>{"k"});
  CHECK(clauses[2].kind == ClauseKind::filter);
  CHECK(tree(*clauses[3].expression) == "flag");
  CHECK(tree(*clauses[4].expression) == "(k==2)");
  CHECK(parse_statement("a@0 <<= b@0 where true, i in world").clauses.size() == 2);  // `true` is no name
  const auto filters = parse_statement("a@0 <<= b@0 where p, q, i in world, p, q").clauses;
  REQUIRE(filters.size() == 3);
  CHECK(filters[0].names.size() == 3);
  CHECK(filters[2].kind == ClauseKind::filter);
}

TEST_CASE("numbers are decimal, hexadecimal or real", "[plans][parser]") {
  CHECK(parse_expression("9223372036854775807")->value == ScalarValue::integer(INT64_MAX));
  CHECK(parse_expression("0xFf")->value == ScalarValue::integer(255));
  CHECK(parse_expression("1.5e-3")->value == ScalarValue::real(1.5e-3));
  CHECK(parse_expression("2.")->value == ScalarValue::real(2));
  CHECK(parse_expression("1e3")->value == ScalarValue::real(1000));
  CHECK(parse_expression("true")->value == ScalarValue::boolean(true));
  for (const char* text : {"12x", "0x", "1e", "1e+", "0xg", "1.5f"})
    CHECK(code_of(text, parse_expression) == "KP-S002");
  for (const char* text : {"9223372036854775808", "0x8000000000000000", "1e999"})
    CHECK(code_of(text, parse_expression) == "KP-S003");
}

TEST_CASE("a printed statement reads back to what prints the same", "[plans][parser]") {
  for (const char* text : {
           "A[j]@i <<= B[i]@j where i in world, j in world, i % 2 == 0",
           "b@recv_rank <<= a@send_rank",
           "A[k]@i <<= B[k]@j where i in world, j in world, k in {0 ... 10}, k % stride == 0",
           "rval@r << sum << sbuff[r]@s where s in world, r in world, s % 2 == r % 2",
           "rb[displs[s]:displs[s] + counts[s]]@r <<= sb[0:counts[s]]@s where s in world, r in world",
           "a@0 <<= 2.0 * b@0, c[i, :, ::2].x@0 << max << --1 - (d - e)@1 where i in range(0, n, 2), (flag), g in {1, "
           "2}, h = !(a && (b || c)), z in {9 ... 0 by -3}, w in g[1:]",
       }) {
    CHECK(to_text(parse_statement(text)) == text);
  }
  CHECK(to_text(*parse_expression("((a)) + (b * (c))")) == "a + b * c");
  CHECK(to_text(*parse_expression("a - (b - c) - (d + e)")) == "a - (b - c) - (d + e)");
  CHECK(to_text(*parse_expression("1.0 + 0x10 + 1e30")) == "1.0 + 16 + 1e+30");
  CHECK(to_text(parse_set("range(n)")) == "range(0, n)");
}

namespace {

/// Random trees of every kind that the parser makes.
class Trees {
 public:
  explicit Trees(unsigned seed) : random_(seed) {}

  ExprPtr expression(int depth) {
    Expr e;
    const int kind = depth == 0 ? below(3) : below(10);
    const auto operands = [&](int count) {
      for (int k = 0; k < count; ++k) e.operands.push_back(expression(depth - 1));
    };
    switch (kind) {
      case 0:
        e.is_literal = true;
        e.value = below(2) ? ScalarValue::integer(below(1000)) : ScalarValue::real(below(1000) / 8.0);
        break;
      case 1: e.value = ScalarValue::boolean(below(2) == 0); break;
      case 2: e.kind = ExprKind::name, e.name = name(); break;
      case 3: {
        e.kind = ExprKind::name, e.name = name();
        for (int k = below(3); k >= 0; --k) e.subscripts.push_back(subscript(depth - 1));
        if (below(3) == 0) e.field_name = name();
        break;
      }
      case 4: {
        static constexpr Operation unary[] = {Operation::neg, Operation::bit_not, Operation::logical_not};
        e.kind = ExprKind::operation, e.operation = unary[below(3)];
        operands(1);
        break;
      }
      case 5: e.kind = ExprKind::call, e.name = below(2) ? "f32" : name(), operands(below(4)); break;
      case 6: e.kind = ExprKind::conditional, operands(3); break;
      case 7: e.kind = below(2) ? ExprKind::logical_and : ExprKind::logical_or, operands(2); break;
      default: {
        static constexpr Operation binary[] = {
            Operation::bit_or, Operation::bit_xor, Operation::bit_and, Operation::eq, Operation::ne,
            Operation::lt,     Operation::le,      Operation::gt,      Operation::ge, Operation::add,
            Operation::sub,    Operation::mul,     Operation::div,     Operation::mod};
        e.kind = ExprKind::operation, e.operation = binary[below(14)];
        operands(2);
      }
    }
    return std::make_shared<const Expr>(std::move(e));
  }

  SetSyntax set() {
    SetSyntax out;
    out.kind = static_cast<SetKind>(below(3));
    if (out.kind == SetKind::listed) {
      for (int k = below(3); k >= 0; --k) out.elements.push_back(expression(2));
    } else if (out.kind == SetKind::range) {
      out.is_half_open = below(2) == 0;
      out.first = expression(2), out.last = expression(2);
      if (below(2)) out.step = expression(2);
    } else {
      Expr e;
      e.kind = ExprKind::name, e.name = name();
      if (below(2)) e.subscripts.push_back(subscript(2));
      out.named = std::make_shared<const Expr>(std::move(e));
    }
    return out;
  }

  StatementSyntax statement() {
    StatementSyntax out;
    for (int k = below(2); k >= 0; --k) {
      ReductionSyntax r;
      r.place = expression(3), r.receiver = expression(3), r.value = expression(4), r.sender = expression(3);
      if (below(2)) r.op = name();
      out.reductions.push_back(std::move(r));
    }
    for (int k = below(4); k > 0; --k) {
      ClauseSyntax c;
      c.kind = static_cast<ClauseKind>(below(3));
      if (c.kind != ClauseKind::filter) c.names.push_back(name());
      if (c.kind == ClauseKind::generator && below(2)) c.names.push_back(name());
      if (c.kind == ClauseKind::generator) c.set = set();
      else c.expression = expression(4);
      out.clauses.push_back(std::move(c));
    }
    return out;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string name() {
    static const char* const names[] = {"a", "b", "_x1", "Where", "i_n", "ranks"};
    return names[below(6)];
  }
  Subscript subscript(int depth) {
    Subscript out;
    out.is_slice = below(2) == 0;
    if (!out.is_slice || below(2)) out.lo = expression(depth);
    if (out.is_slice && below(2)) out.hi = expression(depth);
    if (out.is_slice && below(2)) out.step = expression(depth);
    return out;
  }
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("any tree, printed and read, is the same tree", "[plans][parser]") {
  Trees trees(1);
  for (int k = 0; k < 3000; ++k) {
    const ExprPtr e = trees.expression(6);
    const std::string text = to_text(*e);
    INFO(text);
    const ExprPtr again = parse_expression(text);
    REQUIRE(tree(*again) == tree(*e));
    REQUIRE(to_text(*again) == text);
  }
}

TEST_CASE("any statement, printed and read, prints the same", "[plans][parser]") {
  Trees trees(2);
  for (int k = 0; k < 2000; ++k) {
    const StatementSyntax s = trees.statement();
    const std::string text = to_text(s);
    INFO(text);
    const StatementSyntax again = parse_statement(text);
    REQUIRE(to_text(again) == text);
    REQUIRE(again.reductions.size() == s.reductions.size());
    REQUIRE(again.clauses.size() == s.clauses.size());
    for (std::size_t c = 0; c < s.clauses.size(); ++c) REQUIRE(again.clauses[c].kind == s.clauses[c].kind);
    REQUIRE(node_count(again) == node_count(s));
  }
}

TEST_CASE("nesting of 200 levels is read and of more is refused, whichever way it is made", "[plans][parser]") {
  const auto nested = [](const std::string& open, const std::string& close) {
    const auto with = [&](int count) { return repeated(open, count) + "x" + repeated(close, count); };
    CHECK(code_of(with(199), parse_expression).empty());
    CHECK(code_of(with(201), parse_expression) == "KP-S005");
    CHECK(code_of(with(6'000), parse_expression) == "KP-S005");
  };
  nested("(", ")");
  nested("-", "");
  nested("f(", ")");
  nested("a[", "]");
  nested("a ? ", " : b");
  nested("a ? b : ", "");
  nested("a || (", ")");
  CHECK(code_of("x" + repeated(" + x", 199), parse_expression).empty());
  CHECK(code_of("x" + repeated(" + x", 200), parse_expression) == "KP-S005");
}

TEST_CASE("texts of more than 64 KiB and of more than 20000 nodes are refused", "[plans][parser]") {
  CHECK(code_of(std::string(largest_text_bytes - 1, ' ') + "x", parse_expression).empty());
  CHECK(code_of(std::string(largest_text_bytes, ' ') + "x", parse_expression) == "KP-S004");
  CHECK(code_of("f(" + repeated("x,", 19'998) + "x)", parse_expression).empty());
  CHECK(code_of("f(" + repeated("x,", 19'999) + "x)", parse_expression) == "KP-S006");
}

TEST_CASE("a long list of names that is no generator is read once, not once for each name", "[plans][parser]") {
  // Ten times the filters take ten times as long; with a scan of the rest of the list for each, a hundred times.
  const auto seconds_of = [](int filters, int statements) {
    const std::string text = "a@0 <<= b@0 where " + repeated("x, ", filters) + "x";
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < statements; ++k) CHECK(code_of(text, parse_statement).empty());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double ratio = 1e9;  // the least of three: other programs run, too
  for (int k = 0; k < 3; ++k) ratio = std::min(ratio, seconds_of(19'000, 1) / seconds_of(1'900, 10));
  CHECK(ratio < 3);
  CHECK(parse_statement("a@0 <<= b@0 where " + repeated("x, ", 19'000) + "x in world").clauses.size() == 1);
}

TEST_CASE("words with a meaning of their own are not bound, and names are C identifiers", "[plans][parser]") {
  for (const char* word : {"where", "in", "by", "range", "true", "rank", "size", "world", "left", "right", "min",
                           "select", "f32", "c128", "popcount"}) {
    CHECK(is_reserved(word));
    CHECK_FALSE(code_of(std::string("a@0 <<= b@0 where ") + word + " = 3", parse_statement).empty());
  }
  CHECK_FALSE(is_reserved("i"));
  CHECK(is_identifier("_a1"));
  for (const char* text : {"", "1a", "a-b", "a b", "\xc3\xa9"}) CHECK_FALSE(is_identifier(text));
}

}  // namespace kplan::test
