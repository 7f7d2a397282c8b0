#pragma once
// How errors about a plan are written: `halo.json:14:22 /statements/2: what is wrong [KP-P012]`, and below it the
// text with the place underlined.

#include <string>
#include <string_view>
#include <vector>

#include "kplan/error.hpp"
#include "plans/parser.hpp"
#include "plans/plan_source.hpp"

namespace kplan {

/// The place as it stands before a message: `file:line:column pointer: `, or `pointer: ` without a document.
std::string place_of(const std::string& document, const Origin& origin);

/// An error about a JSON value.
PlanError error_at(const std::string& document, const Origin& origin, const std::string& code,
                   const std::string& message);

/// The place of a piece of a text: the column is that of the piece, or of the text where escapes stand before the
/// piece.
std::string place_in(const std::string& document, const SourceText& text, Span span);

/// An error about a piece of a text, which is shown underlined.
PlanError error_in(const std::string& document, const SourceText& text, Span span, const std::string& code,
                   const std::string& message);

/// The line of the text in which the span begins, and carets below it. Long lines are cut around the span.
std::string underline(std::string_view text, Span span);

/// The message on one line: control bytes become `\x1f`, and the middle of what is far too long to read is left out.
std::string printable(std::string_view message);

/// ` (did you mean `x`?)` for the candidate that is most like the word, or nothing.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// The same, or all candidates where none is like the word: `; there are a, b, c`.
std::string suggestion_or_list(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace kplan
