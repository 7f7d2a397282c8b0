// How it works: the where-list first, left to right, so that each clause sees the names bound before it; then each
// reduction: place, ranks, value and the conversion between them; the operator is check_operator's.
#include "plans/check_statement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plans/check_expression.hpp"
#include "plans/check_operator.hpp"
#include "plans/diagnostic.hpp"
#include "plans/operand_types.hpp"

namespace kplan {
namespace {

constexpr std::size_t most_variables = 32, most_reductions = 64, most_clauses = 64;
constexpr std::int64_t most_written_out = 5'000;

class StatementChecker {
 public:
  StatementChecker(const PlanModel& plan, const StatementSource& source, std::size_t& operator_node_count)
      : plan_(plan), source_(source), operator_node_count_(operator_node_count) {
    scope_.plan = &plan;
    scope_.variables = &out_.variables;
  }

  Statement check() {
    out_.name = source_.name.text;
    out_.text = source_.text;
    out_.origin = source_.origin;
    out_.is_pull = source_.is_pull;
    out_.is_fresh = source_.is_fresh;
    out_.is_any_order = source_.is_any_order;
    out_.group = find_group();
    out_.claimed = claimed_knowledge();
    out_.claim_origin = source_.knowledge.origin;
    try {
      if (source_.syntax.reductions.size() > most_reductions)
        fail("KP-P020", fmt::format("a statement has at most {} reductions", most_reductions),
             source_.syntax.reductions[most_reductions].span);
      if (source_.syntax.clauses.size() > most_clauses)
        fail("KP-P020", fmt::format("a where-list has at most {} clauses", most_clauses),
             source_.syntax.clauses[most_clauses].span);
      for (const ClauseSyntax& c : source_.syntax.clauses) clause(c);
      for (const ReductionSyntax& r : source_.syntax.reductions) out_.reductions.push_back(reduction(r));
    } catch (const ExpressionFault& f) {
      throw error_in(plan_.source.document, source_.text, f.span, f.code, f.message);
    }
    return std::move(out_);
  }

 private:
  int find_group() const {
    if (source_.group.text == "world") return -1;
    const auto g = std::ranges::find(plan_.groups, source_.group.text, &Group::name);
    if (g != plan_.groups.end()) return static_cast<int>(g - plan_.groups.begin());
    std::vector<std::string> names{"world"};
    for (const auto& group : plan_.groups) names.push_back(group.name);
    throw error_at(
        plan_.source.document, source_.group.origin, "KP-P021",
        fmt::format("the group `{}` is not declared{}", source_.group.text, suggestion(source_.group.text, names)));
  }

  std::optional<KnowledgeClass> claimed_knowledge() const {
    const std::string& word = source_.knowledge.text;
    if (word.empty()) return std::nullopt;
    for (const auto c :
         {KnowledgeClass::global, KnowledgeClass::corresponding, KnowledgeClass::sender, KnowledgeClass::receiver})
      if (word == name_of(c)) return c;
    throw error_at(plan_.source.document, source_.knowledge.origin, "KP-P022",
                   fmt::format("knowledge is global, corresponding, sender or receiver, not `{}`", word));
  }

  void bind(const std::string& name, Scalar type, Span span) {
    const auto is_taken = [&](const auto& list) {
      return std::ranges::any_of(list, [&](const auto& x) { return x.name == name; });
    };
    if (is_taken(out_.variables)) fail("KP-P023", fmt::format("`{}` is bound twice; choose another name", name), span);
    if (is_taken(plan_.parameters) || is_taken(plan_.buffers))
      fail("KP-P023",
           fmt::format("`{}` is already a {}; choose another name", name,
                       is_taken(plan_.parameters) ? "parameter" : "buffer"),
           span);
    if (out_.variables.size() == most_variables)
      fail("KP-P020", fmt::format("a statement binds at most {} names", most_variables), span);
    out_.variables.push_back({name, type});
  }

  /// Bindings stand for what they are bound to, and that for what it names: written out, they may grow without bound.
  std::int64_t weigh(const Expr& e, Span span) const {
    std::int64_t weight = 0;
    visit(e, [&](const Expr& x) {
      weight += x.kind == ExprKind::variable && static_cast<std::size_t>(x.id) < weights_.size()
                    ? weights_[static_cast<std::size_t>(x.id)]
                    : 1;
    });
    if (weight > most_written_out)
      fail(
          "KP-P061",
          fmt::format(
              "this stands for {} operations once what is bound in the where-list is written out, at most {} are taken",
              weight, most_written_out),
          span);
    return weight;
  }

  void clause(const ClauseSyntax& c) {
    ExpressionScope scope = scope_;
    scope.where = "a where-list";
    Clause checked;
    checked.kind = c.kind;
    checked.span = c.span;
    switch (c.kind) {
      case ClauseKind::generator: {
        checked.set = set(c.set, scope);
        for (const std::string& name : c.names) {
          bind(name, Scalar::i64, c.span);
          checked.variable = static_cast<int>(out_.variables.size()) - 1;
          out_.clauses.push_back(checked);
        }
        return;
      }
      case ClauseKind::binding: {
        checked.expression = check_expression(*c.expression, scope);
        weights_.resize(out_.variables.size(), 1);
        weights_.push_back(weigh(*checked.expression, c.span));
        if (checked.expression->record)
          fail("KP-P002", "a whole record cannot be bound; name a field of it", c.expression->span);
        bind(c.names[0], checked.expression->type, c.span);
        checked.variable = static_cast<int>(out_.variables.size()) - 1;
        break;
      }
      case ClauseKind::filter:
        checked.expression = check_filter(*c.expression, scope);
        weigh(*checked.expression, c.span);
        break;
    }
    out_.clauses.push_back(std::move(checked));
  }

  Set set(const SetSyntax& s, const ExpressionScope& scope) {
    Set out;
    switch (s.kind) {
      case SetKind::range:
        out.kind = Set::Kind::range;
        out.is_half_open = s.is_half_open;
        out.first = check_index(*s.first, scope, "the first value of a range");
        out.last = check_index(*s.last, scope, "the end of a range");
        if (s.step) {
          out.step = check_index(*s.step, scope, "the step of a range");
          if (out.step->kind == ExprKind::constant && out.step->value.as_integer() == 0)
            fail("KP-P024", "the step of a range cannot be zero", s.step->span);
        }
        return out;
      case SetKind::listed:
        out.kind = Set::Kind::listed;
        for (const auto& e : s.elements) out.elements.push_back(check_index(*e, scope, "a value of a set"));
        return out;
      case SetKind::named: break;
    }
    const std::string& name = s.named->name;
    const bool is_bare = s.named->subscripts.empty();
    if (is_bare && name == source_.group.text) {
      out.kind = Set::Kind::ranks;
      return out;
    }
    if (is_bare &&
        (name == "world" || std::ranges::any_of(plan_.groups, [&](const Group& g) { return g.name == name; })))
      fail("KP-P025",
           fmt::format("the statement is in `{}`, the only group whose name is a set there; `{}` is another",
                       source_.group.text, name),
           s.span);
    if (plan_.find_parameter(name) >= 0 ||
        std::ranges::any_of(out_.variables, [&](const Variable& v) { return v.name == name; }))
      fail("KP-P026", fmt::format("`{}` is one number; a set of numbers up to it is written range({})", name, name),
           s.span);
    if (plan_.find_buffer(name) < 0) {
      std::vector<std::string> names{source_.group.text};
      for (const auto& b : plan_.buffers) names.push_back(b.name);
      fail("KP-P005",
           fmt::format("the set `{}` is not declared{}", name,
                       is_other_word_for_size(name) ? fmt::format("; the set of all ranks is `{}`", source_.group.text)
                                                    : suggestion(name, names)),
           s.span);
    }
    ExpressionScope with_slices = scope;
    with_slices.allows_slices = true;
    out.kind = Set::Kind::buffer;
    ExprPtr e = check_expression(*s.named, with_slices);
    if (e->kind == ExprKind::operation) e = e->operands[0];  // the widening to i64; the interpreter of sets widens
    if (!plan_.is_slice(*e))
      fail("KP-P026", fmt::format("`{}` is one number; a set is a buffer or a slice of one", to_text(*s.named)),
           s.span);
    out.buffer = std::move(e);
    return out;
  }

  Reduction reduction(const ReductionSyntax& r) {
    Reduction out;
    out.span = r.span;
    out.operator_name = r.op;
    ExpressionScope index = scope_;
    index.where = "a rank";
    out.receiver = check_index(*r.receiver, index, "a receiver");
    out.sender = check_index(*r.sender, index, "a sender");
    place(r, out);
    value(r, out);
    check_operator(plan_, out_.name, r, out, operator_node_count_);
    for (const auto* e : {&out.receiver, &out.sender, &out.place, &out.value}) weigh(**e, (*e)->span);
    return out;
  }

  void place(const ReductionSyntax& r, Reduction& out) {
    ExpressionScope scope = scope_;
    scope.is_index = false;
    scope.allows_slices = true;
    scope.where = "a place";
    out.place = check_expression(*r.place, scope);
    if (out.place->kind != ExprKind::element)
      fail("KP-P027", fmt::format("`{}` is no place: a place is an element or a slice of a buffer", to_text(*r.place)),
           r.place->span);
    const auto id = static_cast<std::size_t>(out.place->id);
    const BufferSource& buffer = plan_.source.buffers[id];
    if (buffer.is_varying == std::optional(false))
      fail("KP-P028",
           fmt::format("buffer `{}` is fixed: its contents decide patterns and cannot be written", buffer.name.text),
           r.place->span);
    if (buffer.is_uniform)
      fail("KP-P028",
           fmt::format("buffer `{}` is uniform: a statement writes on some ranks only and would make it differ",
                       buffer.name.text),
           r.place->span);
    out.place_type = out.place->record ? *out.place->record : ElementType(out.place->type);
  }

  void value(const ReductionSyntax& r, Reduction& out) {
    ExpressionScope scope = scope_;
    scope.is_index = false;
    scope.allows_slices = true;
    scope.where = "a value";
    out.value = check_expression(*r.value, scope);
    const auto type_name = [](const Expr& e) {
      return e.record ? std::string("a record") : std::string(name_of(e.type));
    };
    if (out.value->record || out.place->record) {
      if (!out.value->record || !out.place->record || !(*out.value->record == *out.place->record))
        fail("KP-P029",
             fmt::format("the value `{}` is {} and the place `{}` is {}; records travel to places of the same type, or "
                         "field by field",
                         to_text(*r.value), type_name(*out.value), to_text(*r.place),
                         out.value->record && out.place->record ? "another record" : type_name(*out.place)),
             r.value->span);
      if (out.value->kind != ExprKind::element)
        fail("KP-P030", "a whole record is moved as it is; choose it with where-bound names, or move its fields",
             r.value->span);
      out.value_type = *out.value->record;
      return;
    }
    const Scalar to = out.place_type.scalar;
    if (out.value->is_literal) {
      const bool fits = fits_type(out.value->value, to);
      if (!fits && is_integer(out.value->type) && (is_integer(to) || to == Scalar::boolean))
        fail("KP-P029",
             fmt::format("`{}` does not fit the place `{}`, which is {}; if that is meant, write {}({})",
                         to_text(*r.value), to_text(*r.place), name_of(to), name_of(to), to_text(*r.value)),
             r.value->span);
      if (fits) out.value = converted(out.value, to);
    }
    const Scalar from = out.value->type;
    if (!converts_losslessly(from, to))
      fail("KP-P029",
           fmt::format("`{}` is {} and the place `{}` is {}, which does not hold every {}; {}", to_text(*r.value),
                       name_of(from), to_text(*r.place), name_of(to), name_of(from),
                       is_complex(from) && !is_complex(to)
                           ? "a complex number cannot be cast to it"
                           : fmt::format("if that is meant, write {}({})", name_of(to), to_text(*r.value))),
           r.value->span);
    out.value_type = from;
  }

  const PlanModel& plan_;
  const StatementSource& source_;
  std::size_t& operator_node_count_;
  Statement out_;
  ExpressionScope scope_;
  std::vector<std::int64_t> weights_;  ///< of the variables bound so far: operations that each stands for
};

}  // namespace

Statement check_statement(const PlanModel& plan, const StatementSource& source, std::size_t& operator_node_count) {
  return StatementChecker(plan, source, operator_node_count).check();
}

}  // namespace kplan
