#pragma once
// A JSON document whose values know where they stand. nlohmann/json parses; its SAX events are turned into a tree
// with byte offsets, because its own tree keeps none. Documents come from outside: size, depth and number of values
// are limited, and a key that stands twice is an error.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plans/plan_source.hpp"

namespace kplan {

inline constexpr std::size_t largest_document_bytes = 16u << 20;
inline constexpr int largest_document_depth = 32;
inline constexpr std::size_t largest_key_count = 10'000;  ///< of one object
inline constexpr std::size_t largest_value_count = 2'000'000;

enum class JsonKind : std::uint8_t { null, boolean, integer, real, string, array, object };

class JsonDocument;

/// One value of a document; lives as long as the document.
class JsonValue {
 public:
  JsonKind kind = JsonKind::null;
  bool boolean = false;
  std::int64_t integer = 0;         ///< integers that fit; larger ones are real
  double real = 0;                  ///< integers too
  std::uint64_t large_integer = 0;  ///< the integer that only a u64 holds, or 0
  std::string string;
  std::vector<JsonValue> items;   ///< array, object: in the document's order
  std::vector<std::string> keys;  ///< object: of the items
  std::size_t offset = 0;         ///< byte in the document

  const JsonValue* find(std::string_view key) const;
};

/// `a number`, `an object`, ...
std::string_view name_of(JsonKind kind);

/// A value and where it stands, the unit that readers pass about.
struct JsonPlace {
  const JsonDocument* document;
  const JsonValue* value;
  std::string pointer;

  Origin origin() const;
  JsonPlace item(std::size_t k) const;
  /// Throws PlanError about this value.
  [[noreturn]] void fail(const std::string& code, const std::string& message) const;

  // What readers ask of a value; each throws PlanError KP-J010 where the value is of another kind.
  const JsonPlace& expect(JsonKind kind) const;
  SourceText text() const;
  bool boolean() const;
  /// Throws KP-J011 for an object key that is not in `known`.
  void expect_keys(const std::vector<std::string>& known) const;
  /// The member of an object, or nothing.
  std::unique_ptr<JsonPlace> member(std::string_view key) const;
  /// The member, KP-J012 when it is missing.
  JsonPlace required(std::string_view key) const;
};

class JsonDocument {
 public:
  /// Parses the text; `name` stands in messages. Throws PlanError with a KP-J code.
  JsonDocument(std::string name, std::string text);

  const std::string& name() const { return name_; }
  JsonPlace root() const { return {this, &root_, ""}; }
  Origin origin_of(std::size_t offset, std::string pointer) const;
  /// For SourceText: how much of a string's beginning stands in the document as it is.
  std::size_t verbatim_bytes(const JsonValue& string) const;

 private:
  std::string name_, text_;
  std::vector<std::size_t> line_begins_;
  JsonValue root_;
};

/// The file's contents. Throws PlanError KP-J001 when it cannot be read, KP-J002 when it is too large.
std::string read_document(const std::string& path);

}  // namespace kplan
