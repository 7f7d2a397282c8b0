#include "plans/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kplan {

std::string place_of(const std::string& document, const Origin& origin) {
  std::string out;
  if (!document.empty())
    out += origin.line > 0 ? fmt::format("{}:{}:{}", document, origin.line, origin.column) : document;
  if (!origin.pointer.empty()) out += (out.empty() ? "" : " ") + origin.pointer;
  return out.empty() ? out : out + ": ";
}

PlanError error_at(const std::string& document, const Origin& origin, const std::string& code,
                   const std::string& message) {
  return PlanError(code, printable(place_of(document, origin) + message));
}

namespace {

/// Length of the UTF-8 sequence at the text's begin; 0 when there is none. Overlong forms pass: they only get printed.
std::size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80               ? 1
                             : (lead & 0xe0u) == 0xc0u ? 2
                             : (lead & 0xf0u) == 0xe0u ? 3
                             : (lead & 0xf8u) == 0xf0u ? 4
                                                       : 0;
  if (length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((static_cast<unsigned char>(text[k]) & 0xc0u) != 0x80u) return 0;
  return length;
}

}  // namespace

std::string printable(std::string_view message) {
  constexpr std::size_t longest = 1200, kept = 500;
  // Both cuts are moved to where a UTF-8 sequence begins.
  const auto is_inside = [&](std::size_t p) { return (static_cast<unsigned char>(message[p]) & 0xc0u) == 0x80u; };
  std::size_t cut = message.size(), resume = message.size();
  if (message.size() > longest) {
    for (cut = kept; cut > 0 && is_inside(cut); --cut) {
    }
    for (resume = message.size() - kept; resume < message.size() && is_inside(resume); ++resume) {
    }
  }
  std::string out;
  for (std::size_t p = 0; p < message.size();) {
    if (p == cut) {
      out += fmt::format(" ... {} bytes ... ", resume - cut);
      p = resume;
    }
    const auto byte = static_cast<unsigned char>(message[p]);
    const std::size_t length = byte < ' ' || byte == 0x7f ? 0 : sequence_length(message.substr(p));
    if (length == 0) out += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    else out += message.substr(p, length);
    p += std::max<std::size_t>(1, length);
  }
  return out;
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

std::string place_in(const std::string& document, const SourceText& text, Span span) {
  Origin at = text.origin;
  // The text begins behind the quote of a JSON string.
  const std::size_t before = std::min<std::size_t>(span.begin, text.text.size());
  if (at.line > 0 && before < text.verbatim_bytes) at.column += 1 + static_cast<int>(before);
  return place_of(document, at);
}

PlanError error_in(const std::string& document, const SourceText& text, Span span, const std::string& code,
                   const std::string& message) {
  return PlanError(code, printable(place_in(document, text, span) + message),
                   text.text.empty() ? "" : underline(text.text, span));
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  // Levenshtein distance, one row at a time; capitals are no mistake.
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto distance = [&](std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t above = row[j];
        row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1)});
        diagonal = above;
      }
    }
    return row[b.size()];
  };
  if (word.size() > 64) return "";
  const std::string* best = nullptr;
  // Of a short word most letters must be right, or every other short word would be meant.
  std::size_t least = word.size() < 2 ? 1 : word.size() < 4 ? 2 : std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& c : candidates) {
    const std::size_t d = distance(word, c);
    if (d < least) {
      least = d;
      best = &c;
    }
  }
  return best ? fmt::format(" (did you mean `{}`?)", *best) : "";
}

std::string suggestion_or_list(std::string_view word, const std::vector<std::string>& candidates) {
  std::string out = suggestion(word, candidates);
  if (out.empty() && !candidates.empty()) out = fmt::format("; there are {}", fmt::join(candidates, ", "));
  return out;
}

}  // namespace kplan
