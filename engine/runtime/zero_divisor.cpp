#include "engine/runtime/zero_divisor.hpp"

#include <algorithm>
#include <map>

#include "engine/analysis/expressions.hpp"
#include "plans/evaluate.hpp"

namespace kplan {

std::string zero_divisor_environment(const BoundPlan& bound, const std::vector<BoundMemory>& memory, const Statement& s,
                                     const Reduction& r) {
  RankState state = in_group(bound, s).state;
  for (std::size_t b = 0; b < memory.size(); ++b)
    if (memory[b].base) state.contents[b] = memory[b].base;
  std::string out;
  try {
    for_each_environment(s, state, [&](const std::vector<ScalarValue>& variables) {
      EvaluationContext context{.state = &state, .variables = variables.data()};
      if (evaluate_index(*r.sender, context) != state.rank) return true;
      std::map<const Expr*, std::vector<std::int64_t>> selections;
      std::size_t count = 1;
      for (const Expr* e : elements_read(*r.value))
        count = std::max(count, (selections[e] = select(*e, context)).size());
      context.selections = &selections;
      try {
        for (context.position = 0; context.position < count; ++context.position) evaluate(*r.value, context);
      } catch (const EvaluationFault&) {
        if (!variables.empty()) out = " when " + environment_text(s, variables, static_cast<int>(variables.size()));
        return false;
      }
      return true;
    });
  } catch (const EvaluationFault&) {
    // The message without its environment still says what is wrong.
  }
  return out;
}

}  // namespace kplan
