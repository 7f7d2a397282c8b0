#include "engine/analysis/columns.hpp"

#include <algorithm>

namespace kplan {

std::int64_t word_of(const ScalarValue& v, int word) {
  if (is_integer(v.type) || v.type == Scalar::boolean) return v.as_integer();
  return static_cast<std::int64_t>(v.bits[word]);
}

ScalarValue value_of_words(Scalar type, std::int64_t first, std::int64_t second) {
  if (is_integer(type) || type == Scalar::boolean) return convert(ScalarValue::integer(first), type);
  return {type, {static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second)}};
}

int word_count(Scalar type) { return type == Scalar::c128 ? 2 : 1; }

ColumnEvaluator::ColumnEvaluator(const Statement& s, const RankState& state)
    : s_(s), state_(state), variables_(s.variables.size()) {}

EvaluationContext ColumnEvaluator::context_at(const Block& block, std::size_t row) {
  for (std::size_t v = 0; v < variables_.size(); ++v)
    if (row < block.words[v].size())
      variables_[v] =
          value_of_words(s_.variables[v].type, block.words[v][row], block.second[v].empty() ? 0 : block.second[v][row]);
  return {.state = &state_, .variables = variables_.data()};
}

ScalarValue ColumnEvaluator::evaluate_at(const Expr& e, const Block& block, std::size_t row) {
  try {
    return evaluate(e, context_at(block, row));
  } catch (const EvaluationFault& f) {
    throw BlockFault{f, row};
  }
}

void ColumnEvaluator::run_one_by_one(const ColumnProgram& program, const Block& block, std::int64_t* values,
                                     std::int64_t* counts) {
  const Expr& e = program.expression();
  one_by_one_ += static_cast<std::int64_t>(block.count);
  for (std::size_t row = 0; row < block.count; ++row) {
    if (program.form() == ColumnProgram::Form::integers) {
      values[row] = evaluate_at(e, block, row).as_integer();
      continue;
    }
    const Layout& layout = state_.layouts[static_cast<std::size_t>(e.id)];
    std::int64_t count = 1;
    std::uint64_t first = 0;  // of an empty slice it may wrap
    try {
      const std::vector<SubscriptRange> ranges = subscript_ranges(e, context_at(block, row));
      for (std::size_t d = 0; d < ranges.size(); ++d) {
        first += static_cast<std::uint64_t>(ranges[d].first) * static_cast<std::uint64_t>(layout.strides[d]);
        count *= ranges[d].count;
      }
      values[row] = static_cast<std::int64_t>(first);
    } catch (const EvaluationFault& f) {
      throw BlockFault{f, row};
    }
    if (counts) counts[row] = count;
  }
}

bool is_by_ones(const ExprPtr& step) {
  return !step || (step->kind == ExprKind::constant && step->value.as_integer() == 1);
}

bool names_runs(const PlanModel& plan, const Expr& e) {
  if (!plan.is_slice(e)) return true;
  if (!plan.buffers[static_cast<std::size_t>(e.id)].strides.empty()) return false;
  const auto slice = std::ranges::find_if(e.subscripts, &Subscript::is_slice);
  return e.subscripts.empty() || (slice + 1 == e.subscripts.end() && is_by_ones(slice->step));
}

bool names_strided_runs(const PlanModel& plan, const Expr& e) {
  if (names_runs(plan, e)) return true;
  const auto is_slice_by_ones = [](const Subscript& sub) { return sub.is_slice && is_by_ones(sub.step); };
  return plan.buffers[static_cast<std::size_t>(e.id)].strides.empty() &&
         std::ranges::count_if(e.subscripts, &Subscript::is_slice) == 1 &&
         std::ranges::any_of(e.subscripts, is_slice_by_ones);
}

}  // namespace kplan
