// Fuzzes typing and evaluation. An expression over a fixed set of names is refused with a fault, or has one value
// that its printed form has too, bit for bit. The first byte chooses where it stands: i an index, f a filter,
// v a value, o an operator on scalars, r an operator on records.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kplan/plan.hpp"
#include "plans/check_expression.hpp"
#include "plans/evaluate.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace kplan;

const Plan& declarations() {
  static const Plan plan = Plan::parse(R"({
    "kplan": 1, "name": "declarations",
    "types": {"pair": {"fields": [{"name": "value", "type": "f64"}, {"name": "index", "type": "i32"}]}},
    "parameters": {"n": "i64", "m": "i32", "w": "u64", "b": "bool", "x": "f32", "y": "f64", "z": "c128",
                   "s": {"type": "i8", "scope": "private"}, "t": {"type": "u16", "time": "varying"}},
    "buffers": {"A": {"type": "i64", "shape": [7], "time": "fixed"}, "B": {"type": "u8", "shape": [2, 3], "time": "varying"},
                "C": {"type": "f32", "shape": []}, "P": {"type": "pair", "shape": [3]}, "Q": {"type": "c64", "shape": [3]}},
    "statements": [{"communicate": "C@0 <<= 0@0"}]})");
  return plan;
}

struct Names {
  std::vector<ScalarValue> parameters;
  std::vector<std::vector<std::byte>> memory;
  std::vector<Variable> variables{{"i", Scalar::i64}, {"j", Scalar::i64}, {"e", Scalar::f64}, {"c", Scalar::boolean}};
  std::vector<ScalarValue> values;
  RankState state;
  std::vector<std::byte> left, right;

  Names() {
    const PlanModel& plan = declarations().model();
    std::int64_t k = 3;
    for (const Parameter& p : plan.parameters)
      parameters.push_back(convert(ScalarValue::integer(k = k * -2 + 1), p.type));
    state.rank = 2;
    state.size = 5;
    state.parameters = parameters;
    state.layouts = layouts_of(plan, 2, 5, parameters);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      memory.emplace_back(static_cast<std::size_t>(state.layouts[b].extent) * plan.buffers[b].type.size_bytes);
      for (std::size_t at = 0; at < memory.back().size(); ++at)
        memory.back()[at] = static_cast<std::byte>(at * 37 % 11);
    }
    for (const auto& m : memory) state.contents.push_back(m.data());
    values = {ScalarValue::integer(4), ScalarValue::integer(-1), ScalarValue::real(0.1), ScalarValue::boolean(true)};
    left.assign(16, std::byte{3});
    right.assign(16, std::byte{5});
  }
};

std::optional<ScalarValue> value_of(char where, std::string_view text, const Names& names) {
  const PlanModel& plan = declarations().model();
  static const ElementType scalar{Scalar::f32};
  const ElementType& record = plan.types[0].second;
  ExpressionScope scope;
  scope.plan = &plan;
  scope.variables = &names.variables;
  if (where == 'o' || where == 'r') {
    scope.operand_type = where == 'o' ? &scalar : &record;
    scope.variables = nullptr;
    scope.allows_elements = false;
  }
  scope.is_index = where == 'i' || where == 'f';
  EvaluationContext context{.state = &names.state,
                            .variables = names.values.data(),
                            .left = names.left.data(),
                            .right = names.right.data(),
                            .operand_type = scope.operand_type};
  try {
    const ExprPtr parsed = parse_expression(text);
    const ExprPtr e = where == 'i'   ? check_index(*parsed, scope, "an index")
                      : where == 'f' ? check_filter(*parsed, scope)
                                     : check_expression(*parsed, scope);
    if (e->record) return std::nullopt;
    const ScalarValue out = evaluate(*e, context);
    require(out.type == e->type, "the value has another type than its expression", text);
    return out;
  } catch (const SyntaxFault& f) {
    require(f.span.begin <= f.span.end && f.span.end <= text.size(), "the span leaves the text", text);
  } catch (const EvaluationFault& f) {
    require(!f.code.starts_with("KP-I"), f.message, text);
  }
  return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  static const Names names;
  if (count == 0) return 0;
  const char where = static_cast<char>(bytes[0]);
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), count - 1);
  std::string printed;
  try {
    printed = to_text(*parse_expression(text));
  } catch (const SyntaxFault&) {
    return 0;
  }
  require(value_of(where, text, names) == value_of(where, printed, names), "the printed form has another value",
          printed);
  return 0;
}
