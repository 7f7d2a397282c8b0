// How it works: the builder fills the same PlanSource as the JSON reader. Texts are parsed in build(), each error
// naming the declaration or statement it belongs to.
#include <fmt/format.h>

#include "kplan/plan.hpp"
#include "plans/diagnostic.hpp"
#include "plans/model.hpp"

namespace kplan {
namespace {

SourceText plain(std::string text, std::string pointer = "") { return {std::move(text), {std::move(pointer), 0, 0}}; }

std::vector<SourceText> plain_list(const std::vector<Expression>& list, const std::string& pointer) {
  std::vector<SourceText> out;
  for (const auto& e : list) out.push_back(plain(e.text, pointer));
  return out;
}

TypeSource type_source(const TypeName& t, const std::string& pointer) {
  TypeSource out;
  out.origin.pointer = pointer;
  out.name = plain(t.name, pointer);
  if (t.name.empty()) {
    for (const Field& f : t.type.fields)
      out.fields.push_back({plain(f.name, pointer), plain(std::string(name_of(f.type)), pointer),
                            static_cast<std::int64_t>(f.offset_bytes)});
    out.size_bytes = static_cast<std::int64_t>(t.type.size_bytes);
  }
  return out;
}

// Defaults as the JSON reader gives them; what does not fit the type is left for the checker to refuse.
ScalarValue default_scalar(bool v, Scalar) { return ScalarValue::boolean(v); }
ScalarValue default_scalar(std::int64_t v, Scalar type) {
  return type == Scalar::boolean ? ScalarValue::boolean(v != 0) : ScalarValue::integer(v);
}
ScalarValue default_scalar(double v, Scalar type) {
  const ScalarValue real = ScalarValue::real(v);
  if (type == Scalar::boolean) return convert(real, type);
  // The first power of two beyond i64 would be taken for its largest value.
  const ScalarValue whole = convert(real, Scalar::i64);
  return is_integer(type) && whole.as_real() == v && v < 0x1p63 ? whole : real;
}
ScalarValue default_scalar(std::complex<double> v, Scalar) { return ScalarValue::load(Scalar::c128, &v); }

}  // namespace

/// A statement as text, as the texts of its parts, or both.
struct StatementBuilder::State {
  struct ReductionText {
    std::string place, receiver, op, value, sender;
  };
  struct ClauseText {
    ClauseKind kind;
    std::vector<std::string> names;
    std::string text;
  };
  StatementSource source;
  std::string whole;
  std::vector<ReductionText> reductions;
  std::vector<ClauseText> clauses;

  /// `document` stands in messages. Reductions and clauses that were added to a whole text stand behind its own.
  StatementSource finish(const std::string& document) const {
    StatementSource out = source;
    const auto parse = [&](const std::string& text, auto parser) {
      try {
        return parser(text);
      } catch (const SyntaxFault& f) {
        throw error_in(document, plain(text, source.origin.pointer), f.span, f.code, f.message);
      }
    };
    StatementSyntax parts;
    if (!whole.empty()) parts = parse(whole, parse_statement);
    for (const auto& r : reductions) {
      ReductionSyntax syntax;
      syntax.place = parse(r.place, parse_expression);
      syntax.receiver = parse(r.receiver, parse_expression);
      syntax.value = parse(r.value, parse_expression);
      syntax.sender = parse(r.sender, parse_expression);
      syntax.op = r.op;
      parts.reductions.push_back(std::move(syntax));
    }
    if (parts.reductions.empty())
      throw error_at(document, source.origin, "KP-J013", "a statement has at least one reduction");
    for (const auto& c : clauses) {
      ClauseSyntax syntax;
      syntax.kind = c.kind;
      syntax.names = c.names;
      if (c.kind == ClauseKind::generator) syntax.set = parse(c.text, parse_set);
      else syntax.expression = parse(c.text, parse_expression);
      parts.clauses.push_back(std::move(syntax));
    }
    // A text that is whole is shown as it was written.
    out.text = plain(reductions.empty() && clauses.empty() ? whole : to_text(parts), source.origin.pointer);
    out.syntax = parse(out.text.text, parse_statement);
    return out;
  }
};

StatementBuilder::StatementBuilder(std::shared_ptr<State> state) : state_(std::move(state)) {}

StatementBuilder& StatementBuilder::assign(Expression place, Expression receiver, Expression value, Expression sender) {
  return reduce(std::move(place), std::move(receiver), "assign", std::move(value), std::move(sender));
}
StatementBuilder& StatementBuilder::reduce(Expression place, Expression receiver, std::string op, Expression value,
                                           Expression sender) {
  state_->reductions.push_back(
      {std::move(place.text), std::move(receiver.text), std::move(op), std::move(value.text), std::move(sender.text)});
  return *this;
}
StatementBuilder& StatementBuilder::in(std::initializer_list<std::string> names, std::string set) {
  state_->clauses.push_back({ClauseKind::generator, names, std::move(set)});
  return *this;
}
StatementBuilder& StatementBuilder::let(std::string name, Expression is) {
  state_->clauses.push_back({ClauseKind::binding, {std::move(name)}, std::move(is.text)});
  return *this;
}
StatementBuilder& StatementBuilder::where(Expression filter) {
  state_->clauses.push_back({ClauseKind::filter, {}, std::move(filter.text)});
  return *this;
}
StatementBuilder& StatementBuilder::group(std::string name) {
  state_->source.group.text = std::move(name);
  return *this;
}
StatementBuilder& StatementBuilder::pull() {
  state_->source.is_pull = true;
  return *this;
}
StatementBuilder& StatementBuilder::fresh() {
  state_->source.is_fresh = true;
  return *this;
}
StatementBuilder& StatementBuilder::any_order() {
  state_->source.is_any_order = true;
  return *this;
}
StatementBuilder& StatementBuilder::knowledge(std::string claim) {
  state_->source.knowledge.text = std::move(claim);
  return *this;
}

struct PlanBuilder::State {
  PlanSource source;
  std::vector<std::shared_ptr<StatementBuilder::State>> statements;

  OperatorSource& add_operator(std::string name, Algebra algebra) {
    const std::string pointer = "/operators/" + name;
    OperatorSource& out = source.operators.emplace_back();
    out.name = plain(std::move(name), pointer);
    out.is_associative = algebra.is_associative;
    out.is_commutative = algebra.is_commutative;
    return out;
  }
};

PlanBuilder::PlanBuilder(std::string name) : state_(std::make_unique<State>()) {
  state_->source.document = "plan " + name;
  state_->source.name = plain(std::move(name), "/name");
}
PlanBuilder::~PlanBuilder() = default;
PlanBuilder::PlanBuilder(PlanBuilder&&) noexcept = default;
PlanBuilder& PlanBuilder::operator=(PlanBuilder&&) noexcept = default;

PlanBuilder& PlanBuilder::type(std::string name, const ElementType& record) {
  const std::string pointer = "/types/" + name;
  state_->source.types.emplace_back(plain(std::move(name), pointer), type_source(record, pointer));
  return *this;
}

PlanBuilder& PlanBuilder::parameter(std::string name, Scalar type, Scope scope, Time time) {
  const std::string pointer = "/parameters/" + name;
  state_->source.parameters.push_back({plain(std::move(name), pointer),
                                       plain(std::string(name_of(type)), pointer),
                                       scope == Scope::uniform,
                                       time == Time::varying,
                                       {},
                                       {pointer, 0, 0}});
  return *this;
}

PlanBuilder& PlanBuilder::parameter_with_default(std::string name, Scalar type, Number default_value, Scope scope,
                                                 Time time) {
  parameter(std::move(name), type, scope, time);
  state_->source.parameters.back().default_value =
      std::visit([&](auto v) { return default_scalar(v, type); }, default_value.value);
  return *this;
}

PlanBuilder& PlanBuilder::buffer(std::string name, TypeName type, std::vector<Expression> shape) {
  const std::string pointer = "/buffers/" + name;
  BufferSource b;
  b.name = plain(std::move(name), pointer);
  b.type = type_source(type, pointer);
  b.shape = plain_list(shape, pointer + "/shape");
  b.shape_origin.pointer = pointer;
  state_->source.buffers.push_back(std::move(b));
  return *this;
}

PlanBuilder& PlanBuilder::index_buffer(std::string name, TypeName type, std::vector<Expression> shape, Scope scope,
                                       Time time, std::vector<Expression> strides) {
  if (strides.empty()) buffer(std::move(name), std::move(type), std::move(shape));
  else strided_buffer(std::move(name), std::move(type), std::move(shape), std::move(strides));
  state_->source.buffers.back().is_uniform = scope == Scope::uniform;
  state_->source.buffers.back().is_varying = time == Time::varying;
  return *this;
}

PlanBuilder& PlanBuilder::strided_buffer(std::string name, TypeName type, std::vector<Expression> shape,
                                         std::vector<Expression> strides) {
  const std::string pointer = "/buffers/" + name + "/strides";
  buffer(std::move(name), std::move(type), std::move(shape));
  state_->source.buffers.back().strides = plain_list(strides, pointer);
  return *this;
}

PlanBuilder& PlanBuilder::group(std::string name, Expression color, Expression key) {
  const std::string pointer = "/groups/" + name;
  state_->source.groups.push_back(
      {plain(std::move(name), pointer), plain(std::move(color.text), pointer), plain(std::move(key.text), pointer)});
  return *this;
}

PlanBuilder& PlanBuilder::operation(std::string name, std::string expression, Algebra algebra) {
  OperatorSource& o = state_->add_operator(std::move(name), algebra);
  o.expression = plain(std::move(expression), o.name.origin.pointer);
  return *this;
}

PlanBuilder& PlanBuilder::record_operation(std::string name, std::vector<std::pair<std::string, std::string>> fields,
                                           Algebra algebra) {
  OperatorSource& o = state_->add_operator(std::move(name), algebra);
  for (auto& [field, expression] : fields)
    o.fields.emplace_back(plain(std::move(field), o.name.origin.pointer),
                          plain(std::move(expression), o.name.origin.pointer));
  return *this;
}

PlanBuilder& PlanBuilder::native_operation(std::string name, Algebra algebra) {
  state_->add_operator(std::move(name), algebra).is_native = true;
  return *this;
}

StatementBuilder PlanBuilder::communicate(std::string name, std::string text) {
  StatementBuilder out = statement(std::move(name));
  out.state_->whole = std::move(text);
  return out;
}

StatementBuilder PlanBuilder::statement(std::string name) {
  auto state = std::make_shared<StatementBuilder::State>();
  const std::string pointer = fmt::format("/statements/{}", state_->statements.size());
  state->source.name = plain(std::move(name), pointer);
  state->source.group = plain("world", pointer);
  state->source.knowledge.origin.pointer = pointer;
  state->source.origin.pointer = pointer;
  state_->statements.push_back(state);
  return StatementBuilder(std::move(state));
}

Plan PlanBuilder::build() const {
  PlanSource source = state_->source;
  for (const auto& s : state_->statements) source.statements.push_back(s->finish(source.document));
  if (source.statements.empty())
    throw error_at(source.document, {"/statements", 0, 0}, "KP-J013", "a plan has at least one statement");
  return Plan(check_plan(std::move(source)));
}

}  // namespace kplan
