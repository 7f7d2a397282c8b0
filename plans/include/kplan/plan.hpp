#pragma once
// Plans: what goes where on which rank, combined how. Read from JSON, or made by the builder; checked either way.
// What they may say and mean is in language.md, which is installed to share/kplan.

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kplan/error.hpp"
#include "kplan/types.hpp"

namespace kplan {

struct PlanModel;

/// A checked plan. Immutable; copies are cheap and share it; thread-safe.
class Plan {
 public:
  /// Reads a JSON document. `name` stands in messages. Throws PlanError that says where in the document, what, and
  /// how to mend it. Cost: linear in the document, whose size, depth and counts are limited.
  static Plan parse(std::string_view json, std::string name = "plan");
  /// The same, from a file.
  static Plan parse_file(const std::string& path);

  const std::string& name() const;
  /// The plan as a JSON document; parsing it gives the same plan again.
  std::string to_json() const;
  /// A short fingerprint, 32 hexadecimal digits, equal for plans with equal to_json().
  const std::string& digest() const;

  /// The checked form, for the engine and tools.
  const PlanModel& model() const { return *model_; }

 private:
  friend class PlanBuilder;
  explicit Plan(std::shared_ptr<const PlanModel> model);
  std::shared_ptr<const PlanModel> model_;
  std::string digest_;
};

enum class Scope : std::uint8_t { uniform, private_ };
enum class Time : std::uint8_t { fixed, varying };

/// What may be taken of an operator.
struct Algebra {
  bool is_associative = true, is_commutative = true;
};

/// The element type of a buffer that is declared: a scalar, or a record by its fields or by name.
struct TypeName {
  TypeName(Scalar s) : name(name_of(s)) {}         // NOLINT: a scalar names a type
  TypeName(const char* n) : name(n) {}             // NOLINT
  TypeName(std::string n) : name(std::move(n)) {}  // NOLINT
  TypeName(const ElementType& t) : type(t) {       // NOLINT
    if (!t.is_record()) name = name_of(t.scalar);
  }
  std::string name;  ///< empty for a record written out
  ElementType type;
};

/// An expression in the concrete syntax, or an integer.
struct Expression {
  Expression(const char* t) : text(t) {}             // NOLINT
  Expression(std::string t) : text(std::move(t)) {}  // NOLINT
  template <std::integral T>
  Expression(T v) : text(std::to_string(v)) {}  // NOLINT
  std::string text;
};

/// A number or a truth value that is written into a plan. Integers are exact; JSON plans have them up to 2^63 - 1, and
/// larger ones are taken for reals.
struct Number {
  template <std::integral T>
  Number(T v) {  // NOLINT: numbers are given as they are
    if constexpr (std::same_as<T, bool>) value = v;
    else if (v > T{0} && static_cast<std::int64_t>(v) < 0) value = static_cast<double>(v);
    else value = static_cast<std::int64_t>(v);
  }
  Number(double v) : value(v) {}                // NOLINT
  Number(std::complex<double> v) : value(v) {}  // NOLINT
  std::variant<bool, std::int64_t, double, std::complex<double>> value;
};

class PlanBuilder;

/// One statement being built; every call returns it again. Belongs to the builder that made it. Reductions and clauses
/// stand in the order of the calls, behind those of the text that communicate() was given.
class StatementBuilder {
 public:
  /// place @ receiver <<= value @ sender
  StatementBuilder& assign(Expression place, Expression receiver, Expression value, Expression sender);
  /// place @ receiver << op << value @ sender
  StatementBuilder& reduce(Expression place, Expression receiver, std::string op, Expression value, Expression sender);
  /// names in set; a set is written as in the concrete syntax: `world`, `{0 ... n-1}`, `range(n)`, `ghosts[0:n]`
  StatementBuilder& in(std::initializer_list<std::string> names, std::string set);
  /// name = expression
  StatementBuilder& let(std::string name, Expression is);
  /// A filter.
  StatementBuilder& where(Expression filter);
  StatementBuilder& group(std::string name);
  StatementBuilder& pull();
  /// The first transfer into a place assigns.
  StatementBuilder& fresh();
  /// Reductions may be applied in the order in which they arrive.
  StatementBuilder& any_order();
  /// Claims a knowledge class: `corresponding`. Any other claim must be what is inferred, or compiling throws KP-A020.
  StatementBuilder& knowledge(std::string claim);

 private:
  friend class PlanBuilder;
  struct State;
  explicit StatementBuilder(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Makes the same plans as JSON does, piece by piece. Mistakes are reported by build(). Not thread-safe.
class PlanBuilder {
 public:
  explicit PlanBuilder(std::string name);
  ~PlanBuilder();
  PlanBuilder(PlanBuilder&&) noexcept;
  PlanBuilder& operator=(PlanBuilder&&) noexcept;

  /// A record by name; `record_of({{"value", Scalar::f64}, {"index", Scalar::i32}})` makes one of C's layout.
  PlanBuilder& type(std::string name, const ElementType& record);
  PlanBuilder& parameter(std::string name, Scalar type, Scope scope = Scope::uniform, Time time = Time::fixed);
  PlanBuilder& parameter_with_default(std::string name, Scalar type, Number default_value, Scope scope = Scope::uniform,
                                      Time time = Time::fixed);
  PlanBuilder& buffer(std::string name, TypeName type, std::vector<Expression> shape);
  /// A buffer that decides patterns: says whether its contents are the same on all ranks and whether they stay.
  /// Row-major, or with strides in elements.
  PlanBuilder& index_buffer(std::string name, TypeName type, std::vector<Expression> shape, Scope scope, Time time,
                            std::vector<Expression> strides = {});
  PlanBuilder& strided_buffer(std::string name, TypeName type, std::vector<Expression> shape,
                              std::vector<Expression> strides);
  PlanBuilder& group(std::string name, Expression color, Expression key = "rank");
  /// An operator over `left` and `right`; or on records, an expression for each field that it gives, as {field,
  /// expression}; or a C++ function that is registered with the engine under that name.
  PlanBuilder& operation(std::string name, std::string expression, Algebra algebra = {});
  PlanBuilder& record_operation(std::string name, std::vector<std::pair<std::string, std::string>> fields,
                                Algebra algebra = {});
  PlanBuilder& native_operation(std::string name, Algebra algebra = {});
  /// A statement in the concrete syntax.
  StatementBuilder communicate(std::string name, std::string text);
  /// An empty statement, to be filled by the calls of StatementBuilder.
  StatementBuilder statement(std::string name);

  /// The checked plan. Throws PlanError. The builder can go on being used.
  Plan build() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kplan
