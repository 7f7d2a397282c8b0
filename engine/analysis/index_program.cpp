#include "engine/analysis/index_program.hpp"

#include <array>
#include <limits>
#include <optional>

namespace kplan {
namespace {

constexpr std::size_t most_on_stack = 8;

}  // namespace

IndexProgram::IndexProgram(const Expr& e, std::int64_t world_size) : world_size_(world_size), is_complete_(add(e, 0)) {}

bool IndexProgram::find_leaf(const Expr& e, Step& step) const {
  if (e.type != Scalar::i64 || e.record) return false;
  switch (e.kind) {
    case ExprKind::constant: step.operand = e.value.as_integer(); return true;
    case ExprKind::size: step.operand = world_size_; return true;
    case ExprKind::parameter:
      step.from = From::parameter;
      step.operand = e.id;
      return true;
    default: return false;
  }
}

/// Adds steps that leave its value; false where there are none.
bool IndexProgram::add(const Expr& e, std::size_t depth) {
  Step step;
  if (find_leaf(e, step)) {
    steps_.push_back(step);
    return true;
  }
  const auto kind = [&]() -> std::optional<Kind> {
    if (e.kind != ExprKind::operation || !e.is_index) return std::nullopt;
    switch (e.operation) {
      case Operation::add: return Kind::add;
      case Operation::sub: return Kind::sub;
      case Operation::mul: return Kind::mul;
      case Operation::div: return Kind::div;
      case Operation::mod: return Kind::mod;
      default: return std::nullopt;
    }
  }();
  if (!kind || depth == most_on_stack || !add(*e.operands[0], depth)) return false;
  step.kind = *kind;
  if (!find_leaf(*e.operands[1], step)) {
    steps_.push_back({Kind::push});
    if (!add(*e.operands[1], depth + 1)) return false;
    step.from = From::stack;
  }
  steps_.push_back(step);
  return true;
}

[[gnu::hot]] bool IndexProgram::evaluate(const std::vector<ScalarValue>& parameters, std::int64_t& value) const {
  std::array<std::int64_t, most_on_stack> stack;
  std::size_t on_stack = 0;
  std::int64_t left = 0;
  for (const Step& step : steps_) {
    if (step.kind == Kind::push) {
      stack[on_stack++] = left;
      continue;
    }
    std::int64_t right = step.operand;
    if (step.from == From::parameter) {
      right = static_cast<std::int64_t>(parameters[static_cast<std::size_t>(step.operand)].bits[0]);
    } else if (step.from == From::stack) {
      right = left;
      left = stack[--on_stack];
    }
    bool has_value = true;
    switch (step.kind) {
      case Kind::load:
      case Kind::push: left = right; break;
      case Kind::add: has_value = !__builtin_add_overflow(left, right, &left); break;
      case Kind::sub: has_value = !__builtin_sub_overflow(left, right, &left); break;
      case Kind::mul: has_value = !__builtin_mul_overflow(left, right, &left); break;
      case Kind::div:
      case Kind::mod: {
        has_value = right != 0 && (right != -1 || left != std::numeric_limits<std::int64_t>::min());
        if (!has_value) break;
        const std::int64_t remainder = left % right;
        const bool is_moved = remainder != 0 && (remainder < 0) != (right < 0);  // quotients are rounded downwards
        left = step.kind == Kind::div ? left / right - (is_moved ? 1 : 0) : remainder + (is_moved ? right : 0);
        break;
      }
    }
    if (!has_value) return false;
  }
  value = left;
  return true;
}

}  // namespace kplan
