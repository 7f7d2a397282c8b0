#include "plans/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kplan {

std::string place_of(const std::string& document, const Origin& origin) {
  std::string out;
  if (!document.empty()) out += origin.line > 0 ? fmt::format("{}:{}:{}", document, origin.line, origin.column) : document;
  if (!origin.pointer.empty()) out += (out.empty() ? "" : " ") + origin.pointer;
  return out.empty() ? out : out + ": ";
}

PlanError error_at(const std::string& document, const Origin& origin, const std::string& code, const std::string& message) {
  return PlanError(code, place_of(document, origin) + message);
}

std::string underline(std::string_view text, Span span) {
  constexpr std::size_t widest = 110;
  const std::size_t begin = std::min<std::size_t>(span.begin, text.size());
  std::size_t line_begin = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;  // npos + 1 is 0
  std::size_t line_end = std::min(text.find('\n', begin), text.size());
  const std::size_t end = std::clamp<std::size_t>(span.end, begin, line_end);
  std::string before, after;
  if (line_end - line_begin > widest) {
    if (begin - line_begin > widest / 2) {
      line_begin = begin - widest / 2;
      before = "...";
    }
    if (line_end - line_begin > widest) {
      line_end = line_begin + widest;
      after = "...";
    }
  }
  std::string line(text.substr(line_begin, line_end - line_begin));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  const std::size_t indent = 4 + before.size() + (begin - line_begin);
  const std::size_t length = std::max<std::size_t>(1, std::min(end, line_end) - begin);
  return "    " + before + line + after + "\n" + std::string(indent, ' ') + std::string(length, '^');
}

PlanError error_in(const std::string& document, const SourceText& text, Span span, const std::string& code,
                   const std::string& message) {
  Origin at = text.origin;
  // A JSON string without escapes stands in the document as it is, behind its quote.
  const std::string_view before = std::string_view(text.text).substr(0, std::min<std::size_t>(span.begin, text.text.size()));
  if (at.line > 0 && before.find_first_of("\n\t\"\\") == std::string_view::npos) at.column += 1 + static_cast<int>(before.size());
  return PlanError(code, place_of(document, at) + message, text.text.empty() ? "" : underline(text.text, span));
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  // Levenshtein distance, one row at a time.
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t above = row[j];
        row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    return row[b.size()];
  };
  if (word.size() > 64) return "";
  const std::string* best = nullptr;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& c : candidates) {
    const std::size_t d = distance(word, c);
    if (d < least) {
      least = d;
      best = &c;
    }
  }
  return best ? fmt::format(" (did you mean `{}`?)", *best) : "";
}

}  // namespace kplan
