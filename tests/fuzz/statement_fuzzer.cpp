// Fuzzes the reader of the concrete syntax. A text either is refused with a SyntaxFault whose span lies in it, or it
// is printed and read again to what prints the same. The first byte chooses what is read: a statement, an expression
// or a set.
#include <cstdint>
#include <string>
#include <string_view>

#include "plans/diagnostic.hpp"
#include "plans/parser.hpp"
#include "plans/statement_syntax.hpp"
#include "tests/fuzz/require.hpp"

namespace {

std::string printed(const kplan::ExprPtr& e) { return kplan::to_text(*e); }
std::string printed(const kplan::StatementSyntax& s) { return kplan::to_text(s); }
std::string printed(const kplan::SetSyntax& s) { return kplan::to_text(s); }

template <class Parse>
void try_text(std::string_view text, Parse parse) {
  std::string once;
  try {
    once = printed(parse(text));
  } catch (const kplan::SyntaxFault& f) {
    require(f.span.begin <= f.span.end && f.span.end <= text.size(), "the span leaves the text", text);
    (void)kplan::error_in("fuzz", {std::string(text), {"/statements/0/communicate", 3, 7}}, f.span, f.code, f.message);
    return;
  }
  try {
    require(printed(parse(once)) == once, "printing is not stable", once);
  } catch (const kplan::SyntaxFault& f) {
    // Blanks and parentheses are added where there were none, so a text near the limit may grow beyond it.
    require(f.code == "KP-S004", f.message, once);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  if (count == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), count - 1);
  switch (bytes[0]) {
    case 'e': try_text(text, kplan::parse_expression); break;
    case 's': try_text(text, kplan::parse_set); break;
    default: try_text(text, kplan::parse_statement);
  }
  return 0;
}
