#include "plans/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "plans/diagnostic.hpp"

namespace kplan {
namespace {

/// Gives the text to nlohmann's lexer and tells how far it has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* p, const char** at) : p_(p), at_(at) {}
  const char& operator*() const { return *p_; }
  CountingIterator& operator++() {
    ++p_;
    *at_ = p_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& o) const { return p_ == o.p_; }
  bool operator!=(const CountingIterator& o) const { return p_ != o.p_; }

 private:
  const char* p_;
  const char** at_;
};

struct Refusal {
  std::string code, message;
  std::size_t offset;
};

/// Builds the tree. The parser calls an event when it has read the token's last byte (and one byte more for numbers).
class TreeBuilder {
 public:
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  TreeBuilder(std::string_view text, const char* const* at, JsonValue& root) : text_(text), at_(at) {
    stack_.push_back(&root);
  }

  bool null() { return add(JsonKind::null, before_word()) != nullptr; }
  bool boolean(bool v) {
    JsonValue* out = add(JsonKind::boolean, before_word());
    out->boolean = v;
    return true;
  }
  bool number_integer(number_integer_t v) {
    JsonValue* out = add(JsonKind::integer, before_number());
    out->integer = v;
    out->real = static_cast<double>(v);
    return true;
  }
  bool number_unsigned(number_unsigned_t v) {
    const bool fits = v <= static_cast<std::uint64_t>(INT64_MAX);
    JsonValue* out = add(fits ? JsonKind::integer : JsonKind::real, before_number());
    out->integer = fits ? static_cast<std::int64_t>(v) : 0;
    out->large_integer = fits ? 0 : v;
    out->real = static_cast<double>(v);
    return true;
  }
  bool number_float(number_float_t v, const string_t&) {
    add(JsonKind::real, before_number())->real = v;
    return true;
  }
  bool string(string_t& v) {
    add(JsonKind::string, before_string())->string = std::move(v);
    return true;
  }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(JsonKind::object); }
  bool start_array(std::size_t) { return open(JsonKind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& k) {
    JsonValue& object = *stack_.back();
    if (object.keys.size() == largest_key_count)
      throw Refusal{"KP-J004", fmt::format("the object has more than {} keys", largest_key_count), before_string()};
    if (!keys_of_open_.back().insert(k).second)
      throw Refusal{"KP-J005", fmt::format("the key `{}` stands twice in this object", k), before_string()};
    object.keys.push_back(std::move(k));
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) {
    // nlohmann's text is `[json.exception.parse_error.101] parse error at line 1, column 2: <what>`; only parse errors
    // have a position.
    std::string what = e.what();
    if (what.starts_with('[')) what = what.substr(std::min(what.find("] ") + 2, what.size()));
    if (what.starts_with("parse error at")) what = what.substr(std::min(what.find(": ") + 2, what.size()));
    const std::size_t offset = std::min(position == 0 ? 0 : position - 1, text_.size());
    throw Refusal{"KP-J003", "this is not JSON: " + what, offset};
  }

 private:
  std::size_t position() const { return static_cast<std::size_t>(*at_ - text_.data()); }
  std::size_t before_string() const {
    std::size_t p = position() - 1;  // the closing quote
    for (;;) {
      p = text_.rfind('"', p - 1);
      std::size_t backslashes = 0;
      while (backslashes < p && text_[p - 1 - backslashes] == '\\') ++backslashes;
      if (backslashes % 2 == 0) return p;
    }
  }
  std::size_t before_number() const {
    const auto in_number = [](char c) {
      return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
    };
    std::size_t p = position();
    if (p > 0 && !in_number(text_[p - 1])) --p;
    while (p > 0 && in_number(text_[p - 1])) --p;
    return p;
  }
  std::size_t before_word() const {
    std::size_t p = position();
    while (p > 0 && text_[p - 1] >= 'a' && text_[p - 1] <= 'z') --p;
    return p;
  }

  JsonValue* add(JsonKind kind, std::size_t offset) {
    if (++count_ > largest_value_count)
      throw Refusal{"KP-J004", fmt::format("the document has more than {} values", largest_value_count), offset};
    JsonValue* out = stack_.back();
    if (out->kind == JsonKind::array || out->kind == JsonKind::object) out = &out->items.emplace_back();
    out->kind = kind;
    out->offset = offset;
    return out;
  }
  bool open(JsonKind kind) {
    const std::size_t offset = position() - 1;
    if (static_cast<int>(stack_.size()) > largest_document_depth)
      throw Refusal{"KP-J004", fmt::format("the document is nested deeper than {} levels", largest_document_depth),
                    offset};
    stack_.push_back(add(kind, offset));
    keys_of_open_.emplace_back();
    return true;
  }
  bool close() {
    stack_.pop_back();
    keys_of_open_.pop_back();
    return true;
  }

  std::string_view text_;
  const char* const* at_;
  // Pointers stay valid: a value gets no further siblings while something inside it is open.
  std::vector<JsonValue*> stack_;
  std::vector<std::unordered_set<std::string>> keys_of_open_;
  std::size_t count_ = 0;
};

}  // namespace

std::string_view name_of(JsonKind kind) {
  switch (kind) {
    case JsonKind::null: return "null";
    case JsonKind::boolean: return "true or false";
    case JsonKind::integer: return "an integer";
    case JsonKind::real: return "a number";
    case JsonKind::string: return "a string";
    case JsonKind::array: return "an array";
    case JsonKind::object: return "an object";
  }
  return "";
}

const JsonValue* JsonValue::find(std::string_view key) const {
  const auto it = std::ranges::find(keys, key);
  return it == keys.end() ? nullptr : &items[static_cast<std::size_t>(it - keys.begin())];
}

JsonDocument::JsonDocument(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
  line_begins_.push_back(0);
  for (std::size_t p = text_.find('\n'); p != std::string::npos; p = text_.find('\n', p + 1))
    line_begins_.push_back(p + 1);
  try {
    if (text_.size() > largest_document_bytes)
      throw Refusal{"KP-J002",
                    fmt::format("the document has {} bytes, at most {} are read", text_.size(), largest_document_bytes),
                    0};
    // nlohmann takes a NUL byte for the end of the document, whatever follows it.
    if (const std::size_t nul = text_.find('\0'); nul != std::string::npos)
      throw Refusal{"KP-J003", "this is not JSON: a NUL byte stands in it", nul};
    const char* at = text_.data();
    TreeBuilder builder(text_, &at, root_);
    nlohmann::json::sax_parse(CountingIterator(text_.data(), &at), CountingIterator(text_.data() + text_.size(), &at),
                              &builder);
  } catch (const Refusal& r) {
    throw error_at(name_, origin_of(r.offset, ""), r.code, r.message);
  }
}

Origin JsonDocument::origin_of(std::size_t offset, std::string pointer) const {
  const auto line = std::ranges::upper_bound(line_begins_, offset) - line_begins_.begin();
  const std::size_t begin = line_begins_[static_cast<std::size_t>(line - 1)];
  return {std::move(pointer), static_cast<int>(line), 1 + static_cast<int>(offset - begin)};
}

std::size_t JsonDocument::verbatim_bytes(const JsonValue& string) const {
  const std::string_view written = std::string_view(text_).substr(string.offset + 1);
  const auto [differs, at] = std::ranges::mismatch(string.string, written);
  // The byte that begins an escape still stands where it seems to.
  return differs == string.string.end() ? std::string::npos
                                        : static_cast<std::size_t>(differs - string.string.begin()) + 1;
}

Origin JsonPlace::origin() const { return document->origin_of(value->offset, pointer); }

JsonPlace JsonPlace::item(std::size_t k) const {
  std::string step = value->kind == JsonKind::array ? std::to_string(k) : value->keys[k];
  // RFC 6901 escapes.
  for (std::size_t p = 0; p < step.size(); ++p) {
    if (step[p] == '~') step.replace(p, 1, "~0"), ++p;
    else if (step[p] == '/') step.replace(p, 1, "~1"), ++p;
  }
  return {document, &value->items[k], pointer + "/" + step};
}

void JsonPlace::fail(const std::string& code, const std::string& message) const {
  throw error_at(document->name(), origin(), code, message);
}

const JsonPlace& JsonPlace::expect(JsonKind kind) const {
  if (kind == JsonKind::integer && value->kind == JsonKind::real)
    fail("KP-J010", fmt::format("an integer of 64 bits is expected here, not the real number {}", value->real));
  if (value->kind != kind)
    fail("KP-J010", fmt::format("{} is expected here, not {}", name_of(kind), name_of(value->kind)));
  return *this;
}

SourceText JsonPlace::text() const {
  const std::string& string = expect(JsonKind::string).value->string;
  return {string, origin(), document->verbatim_bytes(*value)};
}

bool JsonPlace::boolean() const { return expect(JsonKind::boolean).value->boolean; }

void JsonPlace::expect_keys(const std::vector<std::string>& known) const {
  expect(JsonKind::object);
  for (std::size_t k = 0; k < value->keys.size(); ++k) {
    const std::string& key = value->keys[k];
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string hint = suggestion(key, known);
    item(k).fail("KP-J011", fmt::format("the key `{}` is not known here{}", key,
                                        hint.empty() ? fmt::format("; known are {}", fmt::join(known, ", ")) : hint));
  }
}

std::unique_ptr<JsonPlace> JsonPlace::member(std::string_view key) const {
  const auto it = std::ranges::find(value->keys, key);
  if (it == value->keys.end()) return nullptr;
  return std::make_unique<JsonPlace>(item(static_cast<std::size_t>(it - value->keys.begin())));
}

JsonPlace JsonPlace::required(std::string_view key) const {
  auto out = member(key);
  if (!out) fail("KP-J012", fmt::format("the key `{}` is missing", key));
  return *out;
}

std::string read_document(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec))
    throw PlanError("KP-J001", fmt::format("{} is a folder, not a file", path));
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw PlanError("KP-J001", fmt::format("{} cannot be read: {}", path, std::strerror(errno ? errno : EIO)));
  std::string out;
  char block[65536];
  while (in.read(block, sizeof block) || in.gcount() > 0) {
    out.append(block, static_cast<std::size_t>(in.gcount()));
    if (out.size() > largest_document_bytes)
      throw PlanError("KP-J002",
                      fmt::format("{} is larger than the {} bytes that are read", path, largest_document_bytes));
  }
  return out;
}

}  // namespace kplan
