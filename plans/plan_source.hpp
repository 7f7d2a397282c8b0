#pragma once
// A plan as it was written, before anything is checked: what the JSON reader and the builder both make, and what
// the JSON writer prints. Every piece knows where it stands, so that the checker's errors can point at it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plans/statement_syntax.hpp"

namespace kplan {

/// Where something stands in a document; line 0 when there is no document (plans built in C++).
struct Origin {
  std::string pointer;       ///< JSON pointer
  int line = 0, column = 0;  ///< from 1; the column counts bytes
};

struct SourceText {
  std::string text;
  Origin origin;
  /// How much of its beginning stands in the document byte for byte: up to an escape; 0 for a text that was put
  /// together.
  std::size_t verbatim_bytes = std::string::npos;
};

struct TypeSource {
  struct FieldSource {
    SourceText name, type;
    std::optional<std::int64_t> offset_bytes;
  };
  SourceText name;  ///< of a scalar or of a declared type; empty text for a record written out
  std::vector<FieldSource> fields;
  std::optional<std::int64_t> size_bytes;
  Origin origin;
};

struct ParameterSource {
  SourceText name, type;
  bool is_uniform = true, is_varying = false;
  std::optional<ScalarValue> default_value;
  Origin default_origin;
};

struct BufferSource {
  SourceText name;
  TypeSource type;
  std::vector<SourceText> shape;
  std::optional<std::vector<SourceText>> strides;
  Origin shape_origin;
  bool is_uniform = false;
  std::optional<bool> is_varying;
};

struct GroupSource {
  SourceText name, color, key;
};

struct OperatorSource {
  SourceText name;
  SourceText expression;                                  ///< empty when there are fields or it is native
  std::vector<std::pair<SourceText, SourceText>> fields;  ///< field, expression
  bool is_native = false;                                 ///< a C++ function registered with the engine
  bool is_associative = true, is_commutative = true;
};

struct StatementSource {
  SourceText name;
  SourceText group;        ///< `world` when left out
  SourceText text;         ///< the whole statement in the concrete syntax
  StatementSyntax syntax;  ///< its spans are in `text`
  bool is_pull = false, is_fresh = false, is_any_order = false;
  SourceText knowledge;  ///< empty text when not claimed
  Origin origin;
};

struct PlanSource {
  std::string document;  ///< file name or `plan`, for messages
  SourceText name;
  std::vector<std::pair<SourceText, TypeSource>> types;
  std::vector<ParameterSource> parameters;
  std::vector<BufferSource> buffers;
  std::vector<GroupSource> groups;
  std::vector<OperatorSource> operators;
  std::vector<StatementSource> statements;
};

}  // namespace kplan
