// How it works: declarations in the order in which they can need each other (types, parameters, buffers, groups),
// then the statements. The plan is complete up to what is being checked, so names are looked up in it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "plans/check_expression.hpp"
#include "plans/check_operator.hpp"
#include "plans/check_statement.hpp"
#include "plans/diagnostic.hpp"
#include "plans/json_reader.hpp"
#include "plans/operand_types.hpp"

namespace kplan {
namespace {

constexpr std::size_t most_dimensions = 8, most_declarations = 1024, most_statements = 4096;
constexpr std::size_t largest_record_bytes = 4096;

class PlanChecker {
 public:
  explicit PlanChecker(PlanSource source) : plan_(std::make_shared<PlanModel>()) { plan_->source = std::move(source); }

  std::shared_ptr<const PlanModel> check() {
    PlanSource& s = plan_->source;
    check_title(s.name, "a plan");
    plan_->name = s.name.text;
    limit("types", s.types.size(), most_declarations);
    limit("parameters", s.parameters.size(), most_declarations);
    limit("buffers", s.buffers.size(), most_declarations);
    limit("groups", s.groups.size(), most_declarations);
    limit("operators", s.operators.size(), most_declarations);
    limit("statements", s.statements.size(), most_statements);
    for (const auto& [name, type] : s.types) {
      declare(name);
      plan_->types.emplace_back(name.text, element_type(type));
    }
    for (const auto& p : s.parameters) parameter(p);
    plan_->buffers.reserve(s.buffers.size());  // expressions point to their element types
    for (const auto& b : s.buffers) declare(b.name);
    for (const auto& b : s.buffers) buffer(b);
    for (const auto& g : s.groups) group(g);
    for (const auto& o : s.operators) own_operator(o);
    std::set<std::string> names;
    for (const auto& st : s.statements) {
      check_title(st.name, "a statement");
      if (!names.insert(st.name.text).second)
        fail(st.name.origin, "KP-P042", fmt::format("two statements are called `{}`", st.name.text));
      plan_->statements.push_back(check_statement(*plan_, st, operator_node_count_));
    }
    return plan_;
  }

 private:
  [[noreturn]] void fail(const Origin& at, const char* code, const std::string& message) const {
    throw error_at(plan_->source.document, at, code, message);
  }

  void limit(const char* what, std::size_t count, std::size_t most) const {
    if (count > most)
      fail({std::string("/") + what, 0, 0}, "KP-P040",
           fmt::format("the plan has {} {}, at most {} are read", count, what, most));
  }

  /// Plans and statements are called as one likes, as long as a message and a JSON document can hold it.
  void check_title(const SourceText& name, const char* whose) const {
    const std::string& text = name.text;
    if (text.empty() || text.size() > 200)
      fail(name.origin, "KP-P041", fmt::format("the name of {} has 1 to 200 bytes, not {}", whose, text.size()));
    if (!is_json_text(text) || printable(text) != text)
      fail(name.origin, "KP-P041",
           fmt::format("the name of {} is UTF-8 text on one line, without control characters", whose));
  }

  void declare(const SourceText& name) {
    if (!is_identifier(name.text) || name.text.size() > 200)
      fail(name.origin, "KP-P041", fmt::format("`{}` is no name: a name is a C identifier", name.text));
    if (is_reserved(name.text))
      fail(name.origin, "KP-P041", fmt::format("`{}` has a meaning of its own and cannot be declared", name.text));
    if (!declared_.insert(name.text).second)
      fail(name.origin, "KP-P042", fmt::format("`{}` is declared twice", name.text));
  }

  /// `names` are those of the types that may stand there besides the scalars.
  Scalar scalar(const SourceText& name, const char* what, std::vector<std::string> names = {}) const {
    for (int k = 0; k <= static_cast<int>(Scalar::c128); ++k) {
      if (name_of(static_cast<Scalar>(k)) == name.text) return static_cast<Scalar>(k);
      names.emplace_back(name_of(static_cast<Scalar>(k)));
    }
    fail(name.origin, "KP-P043", fmt::format("`{}` is no {}{}", name.text, what, suggestion_or_list(name.text, names)));
  }

  ElementType element_type(const TypeSource& t) const {
    if (t.fields.empty()) {
      const auto known = std::ranges::find(plan_->types, t.name.text, [](const auto& p) { return p.first; });
      if (known != plan_->types.end()) return known->second;
      std::vector<std::string> names;
      for (const auto& type : plan_->types) names.push_back(type.first);
      return scalar(t.name, "element type", std::move(names));
    }
    ElementType out;
    out.size_bytes = 0;
    std::size_t alignment = 1;
    std::set<std::string_view> names;
    std::array<std::size_t, largest_record_bytes> fields_at{};  // by byte: one more than the field's number
    for (const auto& f : t.fields) {
      if (!is_identifier(f.name.text))
        fail(f.name.origin, "KP-P041", fmt::format("`{}` is no name: a name is a C identifier", f.name.text));
      if (!names.insert(f.name.text).second)
        fail(f.name.origin, "KP-P042", fmt::format("two fields are called `{}`", f.name.text));
      const Scalar type = scalar(f.type, "type of a field");
      const std::size_t a = alignment_of(type);
      std::size_t offset = (out.size_bytes + a - 1) / a * a;
      if (f.offset_bytes) {
        offset = static_cast<std::size_t>(*f.offset_bytes);
      }
      if (offset > largest_record_bytes - size_of(type))
        fail(f.name.origin, "KP-P044",
             fmt::format("a record has at most {} bytes, `{}` ends at byte {}", largest_record_bytes, f.name.text,
                         offset + size_of(type)));
      for (std::size_t byte = offset; byte < offset + size_of(type); ++byte) {
        if (fields_at[byte] > 0) {
          const Field& other = out.fields[fields_at[byte] - 1];
          fail(f.name.origin, "KP-P044",
               fmt::format("the fields `{}` (bytes {} to {}) and `{}` (bytes {} to {}) overlap", other.name,
                           other.offset_bytes, other.offset_bytes + size_of(other.type) - 1, f.name.text, offset,
                           offset + size_of(type) - 1));
        }
        fields_at[byte] = out.fields.size() + 1;
      }
      out.fields.push_back({f.name.text, type, offset});
      out.size_bytes = std::max(out.size_bytes, offset + size_of(type));
      alignment = std::max(alignment, a);
    }
    const std::size_t least = out.size_bytes;
    out.size_bytes =
        t.size_bytes ? static_cast<std::size_t>(*t.size_bytes) : (least + alignment - 1) / alignment * alignment;
    if (out.size_bytes < least)
      fail(t.origin, "KP-P044",
           fmt::format("the record's fields need {} bytes, its size is given as {}", least, out.size_bytes));
    if (out.size_bytes > largest_record_bytes)
      fail(t.origin, "KP-P044",
           fmt::format("a record has at most {} bytes, not {}", largest_record_bytes, out.size_bytes));
    return out;
  }

  void parameter(const ParameterSource& p) {
    declare(p.name);
    Parameter out{p.name.text, scalar(p.type, "type of a parameter"), p.is_uniform, p.is_varying, {}};
    if (p.default_value) {
      const ScalarValue& v = *p.default_value;
      double parts[2];
      convert(v, Scalar::c128).store(parts);
      if (!std::isfinite(parts[0]) || !std::isfinite(parts[1]))
        fail(p.default_origin, "KP-P045",
             fmt::format("the default {} is not finite, and JSON has no such number", to_text(v)));
      const bool fits = fits_type(v, out.type) && (v.type == Scalar::boolean) == (out.type == Scalar::boolean);
      // Larger integers were read as reals.
      const bool is_too_large = is_real(v.type) && is_integer(out.type) && std::fabs(v.as_real()) >= 0x1p63;
      if (!fits)
        fail(p.default_origin, "KP-P045",
             is_too_large ? fmt::format("integers are read up to {}, and the default is larger", INT64_MAX)
                          : fmt::format("the default {} is no value of {}", to_literal(v), name_of(out.type)));
      out.default_value = convert(v, out.type);
    }
    plan_->parameters.push_back(std::move(out));
  }

  ExprPtr index(const SourceText& text, const ExpressionScope& scope, const char* what) {
    try {
      const ExprPtr parsed = parse_expression(text.text);
      node_count_ += node_count(*parsed);
      if (node_count_ > largest_plan_node_count)
        throw SyntaxFault{"KP-P040",
                          fmt::format("the shapes and groups up to this one have more than {} operators and operands",
                                      largest_plan_node_count),
                          parsed->span};
      return check_index(*parsed, scope, what);
    } catch (const SyntaxFault& f) {
      throw error_in(plan_->source.document, text, f.span, f.code, f.message);
    }
  }

  void buffer(const BufferSource& b) {
    Buffer out;
    out.name = b.name.text;
    out.type = element_type(b.type);
    out.is_uniform = b.is_uniform;
    out.is_varying = b.is_varying.value_or(true);
    if (b.shape.size() > most_dimensions)
      fail(b.shape_origin, "KP-P046",
           fmt::format("a buffer has at most {} dimensions, `{}` has {}", most_dimensions, out.name, b.shape.size()));
    if (b.strides && b.strides->size() != b.shape.size())
      fail(b.shape_origin, "KP-P046",
           fmt::format("buffer `{}` has {} dimension{} and {} stride{}", out.name, b.shape.size(),
                       b.shape.size() == 1 ? "" : "s", b.strides->size(), b.strides->size() == 1 ? "" : "s"));
    ExpressionScope scope;
    scope.plan = plan_.get();
    scope.allows_elements = false;
    scope.allows_varying = false;
    scope.where = "a shape";
    out.shape_texts = b.shape;
    for (const auto& text : b.shape) out.shape.push_back(index(text, scope, "an extent"));
    if (b.strides) {
      out.stride_texts = *b.strides;
      for (const auto& text : *b.strides) out.strides.push_back(index(text, scope, "a stride"));
    }
    plan_->buffers.push_back(std::move(out));
  }

  void group(const GroupSource& g) {
    declare(g.name);
    ExpressionScope scope;
    scope.plan = plan_.get();
    scope.allows_varying = false;  // members are found once, as by MPI_Comm_split
    scope.where = "a group";
    plan_->groups.push_back(
        {g.name.text, index(g.color, scope, "a colour"), index(g.key, scope, "a key"), g.color, g.key});
  }

  /// The meaning of an operator depends on the place it is used on; here only its syntax and name are checked.
  void own_operator(const OperatorSource& o) {
    declare(o.name);
    if (std::ranges::find(builtin_operators(), o.name.text) != builtin_operators().end())
      fail(o.name.origin, "KP-P041", fmt::format("`{}` is an operator already", o.name.text));
    const auto parse = [&](const SourceText& text) {
      try {
        parse_expression(text.text);
      } catch (const SyntaxFault& f) {
        throw error_in(plan_->source.document, text, f.span, f.code, f.message);
      }
    };
    if (o.is_native) return;
    if (o.fields.empty()) parse(o.expression);
    for (const auto& [field, text] : o.fields) parse(text);
  }

  std::shared_ptr<PlanModel> plan_;
  std::set<std::string> declared_;
  std::size_t node_count_ = 0, operator_node_count_ = 0;
};

template <class List>
int find_name(const List& list, std::string_view name) {
  const auto it = std::ranges::find_if(list, [&](const auto& x) { return x.name == name; });
  return it == list.end() ? -1 : static_cast<int>(it - list.begin());
}

}  // namespace

std::string_view name_of(KnowledgeClass c) {
  switch (c) {
    case KnowledgeClass::global: return "global";
    case KnowledgeClass::corresponding: return "corresponding";
    case KnowledgeClass::sender: return "sender";
    case KnowledgeClass::receiver: return "receiver";
  }
  return "";
}

[[gnu::hot]] int PlanModel::find_parameter(std::string_view n) const { return find_name(parameters, n); }
int PlanModel::find_buffer(std::string_view n) const { return find_name(buffers, n); }

bool PlanModel::is_slice(const Expr& e) const {
  if (e.subscripts.empty()) return !buffers[static_cast<std::size_t>(e.id)].shape.empty();
  return std::ranges::any_of(e.subscripts, &Subscript::is_slice);
}

std::shared_ptr<const PlanModel> check_plan(PlanSource source) { return PlanChecker(std::move(source)).check(); }

PlanError error_in(const PlanModel& plan, const Statement& s, Span span, const std::string& code,
                   const std::string& message) {
  // The name says more than the number where there is no line to point at: the plan was made by a program.
  const bool is_named = s.text.origin.line > 0 || message.starts_with("statement ");
  return error_in(plan.source.document, s.text, span, code,
                  is_named ? message : fmt::format("statement {}: {}", s.name, message));
}

PlanError assigned_twice(const PlanModel& plan, const Statement& s, std::int64_t element, std::int64_t receiver,
                         const Assigning& first, const Assigning& second) {
  const auto text = [&](const Assigning& a) {
    std::string out = fmt::format("from rank {}", a.sender);
    if (!a.environment.empty()) out += " when " + a.environment;
    if (first.reduction != second.reduction) out += fmt::format(" by reduction {}", a.reduction + 1);
    return out;
  };
  const Reduction& r = s.reductions[second.reduction];
  return error_in(plan, s, r.span, "KP-P060",
                  fmt::format("element {} of `{}` on rank {} is assigned twice: {} and {}; if the last is to stay, "
                              "reduce by an operator of the plan's own whose expression is `right`",
                              element, plan.buffers[static_cast<std::size_t>(r.place->id)].name, receiver, text(first),
                              text(second)));
}

ExprPtr check_free_expression(const PlanModel& plan, const SourceText& text, const std::vector<std::string>& variables,
                              Scalar to) {
  std::vector<Variable> bound;
  for (const auto& v : variables) bound.push_back({v, Scalar::i64});
  ExpressionScope scope;
  scope.plan = &plan;
  scope.variables = &bound;
  scope.allows_elements = false;
  scope.is_index = false;
  scope.where = "a fill";
  try {
    const ExprPtr e = check_expression(*parse_expression(text.text), scope);
    if (e->record || (is_complex(e->type) && !is_complex(to)))
      throw SyntaxFault{"KP-P014", fmt::format("`{}` cannot become {}", text.text, name_of(to)), e->span};
    return e;
  } catch (const SyntaxFault& f) {
    throw error_in(plan.source.document, text, f.span, f.code, f.message);
  }
}

}  // namespace kplan
