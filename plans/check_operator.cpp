// How it works: every operator, built in or the plan's own, becomes expressions over left and right, one for each
// scalar of the place.
#include "plans/check_operator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plans/check_expression.hpp"
#include "plans/diagnostic.hpp"
#include "plans/operand_types.hpp"

namespace kplan {
namespace {

ExprPtr operand(ExprKind kind, const ElementType& type, int field, Span span) {
  Expr e;
  e.kind = kind;
  e.field = field;
  e.type = field < 0 ? type.scalar : type.fields[static_cast<std::size_t>(field)].type;
  e.span = span;
  return std::make_shared<const Expr>(std::move(e));
}

class OperatorChecker {
 public:
  OperatorChecker(const PlanModel& plan, const std::string& statement, std::size_t& operator_node_count)
      : plan_(plan), statement_(statement), operator_node_count_(operator_node_count) {}

  void check(const ReductionSyntax& r, Reduction& out) const {
    if (r.op == "assign") return;
    out.is_assign = false;
    const auto declared =
        std::ranges::find(plan_.source.operators, r.op, [](const OperatorSource& o) { return o.name.text; });
    if (declared != plan_.source.operators.end()) return own_operator(*declared, r, out);
    if (std::ranges::find(builtin_operators(), r.op) == builtin_operators().end()) {
      std::vector<std::string> names = builtin_operators();
      for (const auto& o : plan_.source.operators) names.push_back(o.name.text);
      fail("KP-P031", fmt::format("there is no operator `{}`{}", r.op, suggestion_or_list(r.op, names)),
           r.operator_span);
    }
    if (r.op == "minloc" || r.op == "maxloc") return location_operator(r, out);
    scalar_operator(r, out);
  }

 private:
  void scalar_operator(const ReductionSyntax& r, Reduction& out) const {
    const Scalar type = out.place_type.scalar;
    const auto refuse = [&](std::string_view needs) {
      fail("KP-P032",
           fmt::format("the operator `{}` needs {}, the place `{}` is {}", r.op, needs, to_text(*r.place),
                       out.place_type.is_record() ? "a record" : name_of(type)),
           r.operator_span);
    };
    if (out.place_type.is_record()) refuse("scalars");
    const ExprPtr left = operand(ExprKind::left, out.place_type, -1, r.operator_span);
    const ExprPtr right = operand(ExprKind::right, out.place_type, -1, r.operator_span);
    const auto make = [&](Operation o) {
      out.updates = {{-1, make_operation(o, type, {left, right}, r.operator_span, false)}};
    };
    if (r.op == "land" || r.op == "lor") {
      if (is_complex(type)) refuse("numbers or booleans");
      const Operation o = r.op == "land" ? Operation::bit_and : Operation::bit_or;
      const ExprPtr both =
          make_operation(o, Scalar::boolean, {converted(left, Scalar::boolean), converted(right, Scalar::boolean)},
                         r.operator_span, false);
      out.updates = {{-1, converted(both, type)}};
      return;
    }
    if (r.op == "band" || r.op == "bor" || r.op == "bxor") {
      if (!is_integer(type) && type != Scalar::boolean) refuse("integers");
      return make(r.op == "band" ? Operation::bit_and : r.op == "bor" ? Operation::bit_or : Operation::bit_xor);
    }
    if (r.op == "min" || r.op == "max") {
      if (is_complex(type)) refuse("numbers that have an order");
      return make(r.op == "min" ? Operation::min : Operation::max);
    }
    if (type == Scalar::boolean) refuse("numbers");
    make(r.op == "sum" ? Operation::add : Operation::mul);
  }

  /// MPI's MINLOC and MAXLOC: the better value with its index, of equal values the smaller index.
  void location_operator(const ReductionSyntax& r, Reduction& out) const {
    const auto field = [&](const char* name) {
      const Field* f = out.place_type.find(name);
      return f ? static_cast<int>(f - out.place_type.fields.data()) : -1;
    };
    const int value = field("value"), index = field("index");
    if (out.place_type.fields.size() != 2 || value < 0 || index < 0 ||
        is_complex(out.place_type.fields[static_cast<std::size_t>(value)].type) ||
        !is_integer(out.place_type.fields[static_cast<std::size_t>(index)].type))
      fail("KP-P032",
           fmt::format("the operator `{}` needs records of two fields, `value` and an integer `index`", r.op),
           r.operator_span);
    const Span s = r.operator_span;
    const auto part = [&](ExprKind kind, int f) { return operand(kind, out.place_type, f, s); };
    const auto boolean = [&](Operation o, ExprPtr a, ExprPtr b) {
      return make_operation(o, Scalar::boolean, {std::move(a), std::move(b)}, s, false);
    };
    const Operation better = r.op == "minloc" ? Operation::lt : Operation::gt;
    const ExprPtr is_better = boolean(better, part(ExprKind::right, value), part(ExprKind::left, value));
    const ExprPtr is_tied = boolean(Operation::eq, part(ExprKind::right, value), part(ExprKind::left, value));
    const ExprPtr is_earlier = boolean(Operation::lt, part(ExprKind::right, index), part(ExprKind::left, index));
    const ExprPtr takes = boolean(Operation::bit_or, is_better, boolean(Operation::bit_and, is_tied, is_earlier));
    for (const int f : {value, index})
      out.updates.push_back({f, make_operation(Operation::select, part(ExprKind::left, f)->type,
                                               {takes, part(ExprKind::right, f), part(ExprKind::left, f)}, s, false)});
  }

  void spend(std::size_t nodes, Span span) const {
    operator_node_count_ += nodes;
    if (operator_node_count_ > largest_plan_node_count)
      fail("KP-P040",
           fmt::format("written out for every place they are used on, the plan's operators have more than {} operators "
                       "and operands",
                       largest_plan_node_count),
           span);
  }

  void own_operator(const OperatorSource& o, const ReductionSyntax& r, Reduction& out) const {
    if (o.is_native) {
      out.is_native = true;
      return;
    }
    ExpressionScope scope;
    scope.plan = &plan_;
    scope.allows_elements = scope.allows_other_names = false;
    scope.is_index = false;
    scope.where = "an operator";
    // Records point into the plan's buffers: this copy goes away.
    scope.operand_type = out.place_type.is_record() ? out.place->record : &out.place_type;
    const auto update = [&](const SourceText& text, int field, Scalar to) {
      std::size_t nodes = 0;
      try {
        const ExprPtr parsed = parse_expression(text.text);
        ExprPtr e = check_expression(*parsed, scope);
        nodes = node_count(*parsed) + node_count(*e);
        if (e->record)
          fail("KP-P033",
               fmt::format("`{}` is a whole record, where the operator gives a scalar; name a field of it",
                           to_text(*parsed)),
               e->span);
        const bool fits = converts_losslessly(e->type, to) || (is_integer(e->type) && is_integer(to)) ||
                          (e->type == Scalar::boolean) || (is_real(e->type) && is_real(to)) ||
                          (is_integer(e->type) && !is_integer(to) && to != Scalar::boolean) ||
                          (is_complex(e->type) && is_complex(to));
        if (!fits)
          fail("KP-P033",
               fmt::format("the operator gives {} for a place of {}; cast it: {}(...)", name_of(e->type), name_of(to),
                           name_of(to)),
               e->span);
        out.updates.push_back({field, converted(e, to)});
      } catch (const SyntaxFault& f) {
        throw error_in(
            plan_.source.document, text, f.span, f.code,
            fmt::format("{} (in operator `{}`, used on {} in statement `{}`)", f.message, o.name.text,
                        out.place_type.is_record() ? "a record" : name_of(out.place_type.scalar), statement_));
      }
      spend(nodes, r.operator_span);
    };
    if (!o.fields.empty()) {
      for (const auto& [name, text] : o.fields) {
        const Field* f = out.place_type.is_record() ? out.place_type.find(name.text) : nullptr;
        if (!f)
          throw error_at(
              plan_.source.document, name.origin, "KP-P033",
              fmt::format("operator `{}` names the field `{}`, which the place of statement `{}` does not have",
                          o.name.text, name.text, statement_));
        update(text, static_cast<int>(f - out.place_type.fields.data()), f->type);
      }
      return;
    }
    if (!out.place_type.is_record()) return update(o.expression, -1, out.place_type.scalar);
    record_choice(o, r, scope, out);
  }

  /// An operator such as `left.value < right.value ? left : right`: field by field, with whole operands replaced by
  /// their fields.
  void record_choice(const OperatorSource& o, const ReductionSyntax& r, const ExpressionScope& scope,
                     Reduction& out) const {
    ExprPtr whole;
    try {
      whole = check_expression(*parse_expression(o.expression.text), scope);
    } catch (const SyntaxFault& f) {
      throw error_in(plan_.source.document, o.expression, f.span, f.code,
                     fmt::format("{} (in operator `{}`)", f.message, o.name.text));
    }
    if (!whole->record)
      fail("KP-P032",
           fmt::format(
               "the operator `{}` gives one scalar and the place is a record; give an expression for each field", r.op),
           r.operator_span);
    spend(node_count(*whole) * (1 + out.place_type.fields.size()), r.operator_span);
    for (std::size_t f = 0; f < out.place_type.fields.size(); ++f)
      out.updates.push_back({static_cast<int>(f), field_of(whole, out.place_type, static_cast<int>(f))});
  }

  static ExprPtr field_of(const ExprPtr& e, const ElementType& type, int field) {
    if (e->kind == ExprKind::left || e->kind == ExprKind::right) return operand(e->kind, type, field, e->span);
    Expr out = *e;  // a conditional: nothing else gives a record
    out.record = nullptr;
    out.type = type.fields[static_cast<std::size_t>(field)].type;
    out.operands = {e->operands[0], field_of(e->operands[1], type, field), field_of(e->operands[2], type, field)};
    return std::make_shared<const Expr>(std::move(out));
  }

  const PlanModel& plan_;
  const std::string& statement_;
  std::size_t& operator_node_count_;
};

}  // namespace

const std::vector<std::string>& builtin_operators() {
  static const std::vector<std::string> names{"assign", "sum",  "prod", "min", "max",    "band",
                                              "bor",    "bxor", "land", "lor", "minloc", "maxloc"};
  return names;
}

void check_operator(const PlanModel& plan, const std::string& statement, const ReductionSyntax& r, Reduction& out,
                    std::size_t& operator_node_count) {
  OperatorChecker(plan, statement, operator_node_count).check(r, out);
}

}  // namespace kplan
