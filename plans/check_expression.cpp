// How it works: one recursive pass from the parsed tree to a typed one. Arithmetic of literals is folded on the way,
// so that a literal is always one constant when it meets something that has a type.
#include "plans/check_expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "plans/diagnostic.hpp"
#include "plans/operand_types.hpp"

namespace kplan {
namespace {

ExprPtr share(Expr e) { return std::make_shared<const Expr>(std::move(e)); }

std::optional<Scalar> scalar_named(std::string_view name) {
  for (int k = 0; k <= static_cast<int>(Scalar::c128); ++k)
    if (name_of(static_cast<Scalar>(k)) == name) return static_cast<Scalar>(k);
  return std::nullopt;
}

class Checker {
 public:
  explicit Checker(const ExpressionScope& scope) : scope_(scope) {}

  ExprPtr check(const Expr& e) const {
    switch (e.kind) {
      case ExprKind::constant: return constant_node(e.value, e.span, e.is_literal);
      case ExprKind::name: return name(e);
      case ExprKind::call: return call(e);
      case ExprKind::operation: return e.operands.size() == 1 ? unary(e) : binary(e);
      case ExprKind::logical_and:
      case ExprKind::logical_or: {
        Expr out = node(e);
        out.kind = e.kind;
        out.type = Scalar::boolean;
        for (const auto& o : e.operands) out.operands.push_back(truth(*o));
        return share(std::move(out));
      }
      case ExprKind::conditional: return conditional(e, *e.operands[0], *e.operands[1], *e.operands[2]);
      default: fail("KP-P001", "this expression has no meaning here", e.span);
    }
  }

  ExprPtr truth(const Expr& e) const {
    const ExprPtr out = scalar(e);
    return converted(out, Scalar::boolean);
  }

 private:
  Expr node(const Expr& from) const {
    Expr e;
    e.span = from.span;
    e.is_index = scope_.is_index;
    return e;
  }

  ExprPtr scalar(const Expr& e) const {
    ExprPtr out = check(e);
    if (out->record)
      fail("KP-P002",
           fmt::format("`{}` is a whole record; name a field of it: {}", to_text(e), fields_of(*out->record)), e.span);
    return out;
  }

  static std::string fields_of(const ElementType& record) {
    std::vector<std::string> names;
    for (const Field& f : record.fields) names.push_back("." + f.name);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  /// Index arithmetic is in i64, whatever integer type a name has.
  ExprPtr leaf(Expr e) const {
    const bool widen = scope_.is_index && !e.record && is_integer(e.type) && e.type != Scalar::i64;
    ExprPtr out = share(std::move(e));
    return widen ? converted(out, Scalar::i64) : out;
  }

  ExprPtr name(const Expr& e) const {
    const bool is_plain = e.subscripts.empty() && e.field_name.empty();
    const bool is_parameter = scope_.plan->find_parameter(e.name) >= 0;
    if (!scope_.allows_other_names && (e.name == "rank" || e.name == "size" || is_parameter))
      fail("KP-P004",
           fmt::format("{}`{}` cannot stand in {}, which is over `left` and `right`; make it part of the value",
                       is_parameter ? "parameter " : "", e.name, scope_.where),
           e.span);
    if (e.name == "rank" || e.name == "size") {
      if (!is_plain) fail("KP-P003", fmt::format("`{}` is a number and has no elements", e.name), e.span);
      Expr out = node(e);
      out.kind = e.name == "rank" ? ExprKind::rank : ExprKind::size;
      return share(std::move(out));
    }
    if (e.name == "left" || e.name == "right") return operand(e);
    if (scope_.variables) {
      const auto v = std::ranges::find(*scope_.variables, e.name, &Variable::name);
      if (v != scope_.variables->end()) {
        if (!is_plain) fail("KP-P003", fmt::format("`{}` is a where-bound value and has no elements", e.name), e.span);
        Expr out = node(e);
        out.kind = ExprKind::variable;
        out.id = static_cast<int>(v - scope_.variables->begin());
        out.type = v->type;
        return leaf(std::move(out));
      }
    }
    if (const int p = scope_.plan->find_parameter(e.name); p >= 0) {
      const Parameter& parameter = scope_.plan->parameters[static_cast<std::size_t>(p)];
      if (!is_plain) fail("KP-P003", fmt::format("parameter `{}` is a scalar and has no elements", e.name), e.span);
      if (parameter.is_varying && !scope_.allows_varying)
        fail("KP-P004", fmt::format("parameter `{}` is varying and cannot stand in {}", e.name, scope_.where), e.span);
      Expr out = node(e);
      out.kind = ExprKind::parameter;
      out.id = p;
      out.type = parameter.type;
      return leaf(std::move(out));
    }
    if (const int b = scope_.plan->find_buffer(e.name); b >= 0) return element(e, b);
    fail("KP-P005",
         fmt::format(
             "`{}` is not declared{}", e.name,
             is_other_word_for_size(e.name) ? "; the number of ranks is `size`" : suggestion(e.name, names_in_scope())),
         e.span);
  }

  std::vector<std::string> names_in_scope() const {
    std::vector<std::string> out{"rank", "size"};
    if (scope_.variables)
      for (const auto& v : *scope_.variables) out.push_back(v.name);
    for (const auto& p : scope_.plan->parameters) out.push_back(p.name);
    for (const auto& b : scope_.plan->buffers) out.push_back(b.name);
    return out;
  }

  ExprPtr operand(const Expr& e) const {
    if (!scope_.operand_type) fail("KP-P006", fmt::format("`{}` has a meaning only in operators", e.name), e.span);
    if (!e.subscripts.empty()) fail("KP-P003", fmt::format("`{}` has no elements", e.name), e.span);
    Expr out = node(e);
    out.kind = e.name == "left" ? ExprKind::left : ExprKind::right;
    set_type(out, *scope_.operand_type, e);
    return share(std::move(out));
  }

  /// The type of an element or of the field of it that `e` names.
  void set_type(Expr& out, const ElementType& type, const Expr& e) const {
    if (e.field_name.empty()) {
      if (type.is_record()) out.record = &type;
      else out.type = type.scalar;
      return;
    }
    if (!type.is_record())
      fail("KP-P007", fmt::format("`{}` has the elements {}, which have no fields", e.name, name_of(type.scalar)),
           e.span);
    const Field* field = type.find(e.field_name);
    if (!field) {
      std::vector<std::string> names;
      for (const Field& f : type.fields) names.push_back(f.name);
      fail("KP-P007",
           fmt::format("the records of `{}` have no field `{}`{}", e.name, e.field_name,
                       suggestion(e.field_name, names)),
           e.span);
    }
    out.field = static_cast<int>(field - type.fields.data());
    out.type = field->type;
  }

  ExprPtr element(const Expr& e, int id) const {
    const Buffer& buffer = scope_.plan->buffers[static_cast<std::size_t>(id)];
    if (!scope_.allows_elements)
      fail("KP-P004", fmt::format("buffer `{}` cannot stand in {}", e.name, scope_.where), e.span);
    const std::size_t rank = buffer.shape.size();
    if (e.subscripts.size() > rank || (!e.subscripts.empty() && e.subscripts.size() < rank))
      fail("KP-P008",
           fmt::format("`{}` has {} dimension{}, {} subscript{} given", e.name, rank, rank == 1 ? "" : "s",
                       e.subscripts.size(), e.subscripts.size() == 1 ? " is" : "s are"),
           e.span);
    Expr out = node(e);
    out.kind = ExprKind::element;
    out.id = id;
    out.name = e.name;
    set_type(out, buffer.type, e);
    out.element_bytes = buffer.type.size_bytes;
    if (out.field >= 0) out.field_offset_bytes = buffer.type.fields[static_cast<std::size_t>(out.field)].offset_bytes;
    bool has_slice = e.subscripts.empty() && rank > 0;
    ExpressionScope inner = scope_;
    inner.is_index = true;
    inner.allows_slices = false;
    for (const Subscript& s : e.subscripts) {
      has_slice = has_slice || s.is_slice;
      Subscript checked;
      checked.is_slice = s.is_slice;
      const auto part = [&](const ExprPtr& p) { return p ? check_index(*p, inner, "a subscript") : nullptr; };
      checked.lo = part(s.lo);
      checked.hi = part(s.hi);
      checked.step = part(s.step);
      check_bounds(checked, s);
      out.subscripts.push_back(std::move(checked));
    }
    if (has_slice && !scope_.allows_slices)
      fail("KP-P009",
           fmt::format("`{}` is {}, where one element is needed", to_text(e),
                       e.subscripts.empty() ? "a whole buffer" : "a slice"),
           e.span);
    if (scope_.is_index) {
      if (out.record || !(is_integer(out.type) || out.type == Scalar::boolean))
        fail("KP-P010", fmt::format("`{}` decides what goes where and so must hold integers", e.name), e.span);
      if (!scope_.plan->source.buffers[static_cast<std::size_t>(id)].is_varying)
        fail("KP-P011",
             fmt::format("buffer `{}` decides what goes where and must say so: add \"time\": \"fixed\" or \"time\": "
                         "\"varying\" to it",
                         e.name),
             e.span);
    }
    if (buffer.is_varying && !scope_.allows_varying)
      fail("KP-P004", fmt::format("buffer `{}` is varying and cannot stand in {}", e.name, scope_.where), e.span);
    return leaf(std::move(out));
  }

  /// A slice upwards that begins or ends below 0 names nothing, or what is not there: whoever wrote it counts from the
  /// end, as other languages do. Downwards, `a[3:-1:-1]` ends with element 0.
  static void check_bounds(const Subscript& checked, const Subscript& written) {
    const auto is_negative = [](const ExprPtr& e) {
      return e && e->kind == ExprKind::constant && e->value.as_integer() < 0;
    };
    const bool is_upwards =
        !checked.step || (checked.step->kind == ExprKind::constant && checked.step->value.as_integer() > 0);
    if (!checked.is_slice || !is_upwards) return;
    for (const auto& [bound, text] : {std::pair(&checked.lo, &written.lo), {&checked.hi, &written.hi}})
      if (is_negative(*bound))
        fail("KP-P062",
             fmt::format("a bound of a slice is {}, and bounds do not count from the end; write the extent less that "
                         "many",
                         to_text(**text)),
             (*text)->span);
  }

  ExprPtr operation(Operation op, Scalar type, std::vector<ExprPtr> operands, const Expr& at) const {
    return folded(make_operation(op, type, std::move(operands), at.span, scope_.is_index));
  }

  ExprPtr unary(const Expr& e) const {
    ExprPtr a = scalar(*e.operands[0]);
    if (e.operation == Operation::logical_not)
      return operation(e.operation, Scalar::boolean, {converted(a, Scalar::boolean)}, e);
    if (!a->is_literal) a = converted(a, promoted(a->type));
    if (e.operation == Operation::bit_not && !is_integer(a->type))
      fail("KP-P014", fmt::format("`~` needs an integer, not {}", name_of(a->type)), e.span);
    return operation(e.operation, a->type, {a}, e);
  }

  ExprPtr binary(const Expr& e) const {
    auto [a, b] = met(scalar(*e.operands[0]), scalar(*e.operands[1]), e.span);
    const bool is_bitwise =
        e.operation == Operation::bit_and || e.operation == Operation::bit_or || e.operation == Operation::bit_xor;
    if (is_comparison(e.operation)) {
      if (is_complex(a->type) && e.operation != Operation::eq && e.operation != Operation::ne)
        fail("KP-P014", "complex numbers have no order; `==` and `!=` alone compare them", e.span);
      return operation(e.operation, Scalar::boolean, {a, b}, e);
    }
    if ((is_bitwise && !is_integer(a->type) && a->type != Scalar::boolean) ||
        (e.operation == Operation::mod && !is_integer(promoted(a->type))))
      fail("KP-P014", fmt::format("`{}` needs integers, not {}", infix_operator_of(e)->symbol, name_of(a->type)),
           e.span);
    if (a->type == Scalar::boolean && !is_bitwise) {
      a = converted(a, Scalar::i32);
      b = converted(b, Scalar::i32);
      if (scope_.is_index) {
        a = converted(a, Scalar::i64);
        b = converted(b, Scalar::i64);
      }
    }
    return operation(e.operation, a->type, {a, b}, e);
  }

  ExprPtr conditional(const Expr& e, const Expr& c, const Expr& yes, const Expr& no) const {
    ExprPtr condition = truth(c);
    ExprPtr a = check(yes), b = check(no);
    Expr out = node(e);
    out.kind = ExprKind::conditional;
    if (a->record || b->record) {
      if (!a->record || !b->record || !(*a->record == *b->record))
        fail("KP-P002", "the two choices have different types; both are scalars, or records of one type", e.span);
      out.record = a->record;
    } else {
      std::tie(a, b) = met(a, b, e.span);
      out.type = a->type;
    }
    out.operands = {condition, a, b};
    return share(std::move(out));
  }

  struct Function {
    Operation operation;
    std::size_t least, most;
    enum class Domain : std::uint8_t { ordered, integers, shift, reals } domain;
  };

  ExprPtr call(const Expr& e) const {
    if (const auto type = scalar_named(e.name)) {
      expect_arguments(e, 1, 1);
      const ExprPtr a = scalar(*e.operands[0]);
      if (is_complex(a->type) && !is_complex(*type))
        fail("KP-P014", fmt::format("a complex number cannot become {}", name_of(*type)), e.span);
      const ExprPtr out = converted(a->is_literal ? constant_node(a->value, a->span, false) : a, *type);
      if (scope_.is_index && is_integer(out->type)) return converted(out, Scalar::i64);
      return out;
    }
    if (e.name == "select") {
      expect_arguments(e, 3, 3);
      return conditional(e, *e.operands[0], *e.operands[1], *e.operands[2]);
    }
    static const std::unordered_map<std::string_view, Function> functions{
        {"min", {Operation::min, 2, 16, Function::Domain::ordered}},
        {"max", {Operation::max, 2, 16, Function::Domain::ordered}},
        {"clamp", {Operation::max, 3, 3, Function::Domain::ordered}},
        {"abs", {Operation::abs, 1, 1, Function::Domain::ordered}},
        {"floor_div", {Operation::div, 2, 2, Function::Domain::integers}},
        {"floor_mod", {Operation::mod, 2, 2, Function::Domain::integers}},
        {"ceil_div", {Operation::ceil_div, 2, 2, Function::Domain::integers}},
        {"shl", {Operation::shl, 2, 2, Function::Domain::shift}},
        {"shr", {Operation::shr, 2, 2, Function::Domain::shift}},
        {"log2", {Operation::log2, 1, 1, Function::Domain::integers}},
        {"pow2", {Operation::pow2, 1, 1, Function::Domain::integers}},
        {"popcount", {Operation::popcount, 1, 1, Function::Domain::integers}},
        {"sqrt", {Operation::sqrt, 1, 1, Function::Domain::reals}}};
    const auto found = functions.find(e.name);
    if (found == functions.end()) {
      std::vector<std::string> names{"select"};
      for (const auto& [name, f] : functions) names.emplace_back(name);
      std::ranges::sort(names);
      fail("KP-P015",
           fmt::format("there is no function `{}`{}", e.name,
                       e.name == "not" ? "; it is written `!`" : suggestion_or_list(e.name, names)),
           e.span);
    }
    const Function& f = found->second;
    expect_arguments(e, f.least, f.most);
    return apply_function(e, f);
  }

  static void expect_arguments(const Expr& e, std::size_t least, std::size_t most) {
    if (e.operands.size() >= least && e.operands.size() <= most) return;
    const std::string count = least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
    fail("KP-P016",
         fmt::format("`{}` takes {} argument{}, not {}", e.name, count, count == "1" ? "" : "s", e.operands.size()),
         e.span);
  }

  ExprPtr apply_function(const Expr& e, const Function& f) const {
    std::vector<ExprPtr> a;
    for (const auto& o : e.operands) a.push_back(scalar(*o));
    if (f.domain == Function::Domain::reals) {
      if (is_complex(a[0]->type))
        fail("KP-P014", fmt::format("`{}` needs a real number, not {}", e.name, name_of(a[0]->type)), e.span);
      if (!is_real(a[0]->type))
        a[0] = a[0]->is_literal ? constant_node(convert(a[0]->value, Scalar::f64), a[0]->span, true)
                                : converted(a[0], Scalar::f64);
      return operation(f.operation, a[0]->type, {a[0]}, e);
    }
    if (a.size() == 1 && !a[0]->is_literal)
      a[0] = converted(a[0], scope_.is_index && is_integer(promoted(a[0]->type)) ? Scalar::i64 : promoted(a[0]->type));
    // All arguments in one type: twice over the list, so that the first meets the last too.
    for (int round = 0; round < 2; ++round)
      for (std::size_t k = 1; k < a.size(); ++k) std::tie(a[k - 1], a[k]) = met(a[k - 1], a[k], e.span);
    for (std::size_t k = 0; k + 1 < a.size(); ++k) a[k] = converted(a[k], a.back()->type);
    const Scalar type = a.back()->type;
    if (f.domain != Function::Domain::ordered && !is_integer(type))
      fail("KP-P014", fmt::format("`{}` needs integers, not {}", e.name, name_of(type)), e.span);
    if (is_complex(type))
      fail("KP-P014", fmt::format("`{}` needs numbers that have an order, not {}", e.name, name_of(type)), e.span);
    if (e.name == "clamp") {
      const ExprPtr above = operation(Operation::max, type, {a[0], a[1]}, e);
      return operation(Operation::min, type, {above, a[2]}, e);
    }
    if (a.size() == 1) return operation(f.operation, type, {a[0]}, e);
    ExprPtr out = a[0];
    for (std::size_t k = 1; k < a.size(); ++k) out = operation(f.operation, type, {out, a[k]}, e);
    return out;
  }

  const ExpressionScope& scope_;
};

}  // namespace

bool is_other_word_for_size(std::string_view name) {
  static constexpr std::array words{"ranks", "nranks", "num_ranks", "nprocs", "np", "comm_size"};
  return std::ranges::any_of(words, [&](const char* w) { return name == w; });
}

ExprPtr check_expression(const Expr& parsed, const ExpressionScope& scope) { return Checker(scope).check(parsed); }

ExprPtr check_index(const Expr& parsed, const ExpressionScope& scope, std::string_view what) {
  const ExprPtr e = check_expression(parsed, scope);
  if (e->record || !(is_integer(e->type) || e->type == Scalar::boolean))
    fail("KP-P017",
         fmt::format("{} is an integer, `{}` is {}; a real can be cast: i64(x)", what, to_text(parsed),
                     e->record ? "a record" : name_of(e->type)),
         parsed.span);
  return converted(e, Scalar::i64);
}

ExprPtr check_filter(const Expr& parsed, const ExpressionScope& scope) {
  const ExprPtr e = check_expression(parsed, scope);
  if (e->record || is_complex(e->type))
    fail("KP-P018",
         fmt::format("a filter is true or false, `{}` is {}", to_text(parsed),
                     e->record ? "a record" : name_of(e->type)),
         parsed.span);
  return converted(e, Scalar::boolean);
}

}  // namespace kplan
