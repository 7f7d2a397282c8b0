#pragma once
// The checked plan: every name resolved to a number, every expression typed, every rule of language.md that needs
// no values verified. Analysis and the reference interpreter work on this and on nothing else.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kplan/error.hpp"
#include "plans/plan_source.hpp"

namespace kplan {

struct Parameter {
  std::string name;
  Scalar type = Scalar::i64;
  bool is_uniform = true, is_varying = false;
  std::optional<ScalarValue> default_value;
};

/// The part of a buffer that is left where some of its dimensions have an index, or a slice of so many elements.
struct Plane {
  int buffer = -1;
  std::vector<ExprPtr> firsts;   ///< by dimension, over parameters; null: the whole dimension
  std::vector<ExprPtr> lengths;  ///< over fixed parameters; null: one element
};

struct Buffer {
  std::string name;
  ElementType type;
  std::vector<ExprPtr> shape;    ///< over fixed parameters, rank and size
  std::vector<ExprPtr> strides;  ///< in elements; empty: row-major
  std::vector<SourceText> shape_texts, stride_texts;
  bool is_uniform = false, is_varying = true;
  /// Of a buffer that no plan declares: what it is of another one, before it, which its shape and strides are those of.
  std::optional<Plane> plane;
};

struct Group {
  std::string name;
  ExprPtr color, key;
  SourceText color_text, key_text;
};

/// A generator's set. `subscripts` of a buffer set: empty for all its elements, or one slice.
struct Set {
  enum class Kind : std::uint8_t { ranks, range, listed, buffer } kind = Kind::ranks;
  ExprPtr first, last, step;  ///< range; step is null for 1
  bool is_half_open = false;
  std::vector<ExprPtr> elements;  ///< listed
  ExprPtr buffer;                 ///< an element expression
};

struct Clause {
  ClauseKind kind = ClauseKind::filter;
  int variable = -1;  ///< generator, binding; a generator of several names is one clause for each
  Set set;
  ExprPtr expression;  ///< binding, filter (boolean)
  Span span;
};

/// A where-bound variable: i64 from a generator, any scalar from a binding.
struct Variable {
  std::string name;
  Scalar type = Scalar::i64;
};

/// What a reduction does to one scalar of its place: `field` (or the whole element when -1) becomes `result`, an
/// expression over left (what the place holds) and right (the value, converted to the place's type).
struct Update {
  int field = -1;
  ExprPtr result;
};

struct Reduction {
  ExprPtr place;             ///< an element or slice
  ExprPtr receiver, sender;  ///< i64
  ExprPtr value;             ///< scalar: any expression; record: an element or slice
  ElementType place_type;    ///< of the place's elements (or of the field that is meant)
  ElementType value_type;    ///< of what travels
  std::string operator_name;
  bool is_assign = true;
  bool is_native = false;  ///< the operator is a C++ function registered with the engine
  std::vector<Update> updates;
  Span span;
};

enum class KnowledgeClass : std::uint8_t { global, corresponding, sender, receiver };
std::string_view name_of(KnowledgeClass c);

struct Statement {
  std::string name;
  int group = -1;  ///< -1: world
  bool is_pull = false, is_fresh = false, is_any_order = false;
  std::optional<KnowledgeClass> claimed;
  Origin claim_origin;
  std::vector<Reduction> reductions;
  std::vector<Clause> clauses;
  std::vector<Variable> variables;
  SourceText text;
  Origin origin;
};

/// Immutable and shared by everything that refers to it.
struct PlanModel {
  PlanSource source;
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Group> groups;
  std::vector<Statement> statements;
  /// Types that expressions point to; deque-like stability is not needed, the vector is filled before any expression is
  /// made.
  std::vector<std::pair<std::string, ElementType>> types;

  int find_parameter(std::string_view name) const;  ///< -1 when there is none
  int find_buffer(std::string_view name) const;
  /// The buffer in whose memory the buffer lies: itself, or that whose plane it is.
  int storage_of(int buffer) const {
    const std::optional<Plane>& plane = buffers[static_cast<std::size_t>(buffer)].plane;
    return plane ? plane->buffer : buffer;
  }
  /// Of a checked element expression: whether it can name more or fewer elements than one.
  bool is_slice(const Expr& element) const;
};

/// Checks everything that can be checked without values. Throws PlanError with a KP-P code.
std::shared_ptr<const PlanModel> check_plan(PlanSource source);

/// An error about a piece of a statement's text.
PlanError error_in(const PlanModel& plan, const Statement& s, Span span, const std::string& code,
                   const std::string& message);

/// A transfer that assigns: its sender as a world rank, its environment as text or empty, its reduction.
struct Assigning {
  std::int64_t sender;
  std::string environment;
  std::size_t reduction;
};
/// KP-P060: two transfers assign to an element of the place of the second one's reduction, on `receiver`, a world rank.
PlanError assigned_twice(const PlanModel& plan, const Statement& s, std::int64_t element, std::int64_t receiver,
                         const Assigning& first, const Assigning& second);

/// A one-statement expression context for tools: parses and types an expression over rank, size, the plan's
/// parameters and the given variables (all i64), whose value a cast could make one of `to`. The expression keeps its
/// own type. Throws PlanError.
ExprPtr check_free_expression(const PlanModel& plan, const SourceText& text, const std::vector<std::string>& variables,
                              Scalar to);

}  // namespace kplan
