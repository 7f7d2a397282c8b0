#include "random_plan.hpp"

namespace kplan::test {

RandomPlan shrunk(RandomPlan plan, const std::function<bool(const RandomPlan&)>& fails) {
  bool has_changed = true;
  const auto attempt = [&](const std::function<void(RandomPlan&)>& change) {
    RandomPlan smaller = plan;
    change(smaller);
    if (smaller.to_json() == plan.to_json() && smaller.ranks == plan.ranks) return false;
    if (!fails(smaller)) return false;
    plan = std::move(smaller);
    return has_changed = true;
  };
  while (has_changed) {
    has_changed = false;
    for (std::size_t k = plan.statements.size(); k-- > 0 && plan.statements.size() > 1;)
      attempt([&](RandomPlan& p) { p.statements.erase(p.statements.begin() + static_cast<std::ptrdiff_t>(k)); });
    for (int ranks = 1; ranks < plan.ranks; ++ranks)
      if (attempt([&](RandomPlan& p) { p.ranks = ranks; })) break;
    for (std::size_t k = 0; k < plan.statements.size(); ++k) {
      for (std::size_t r = plan.statements[k].reductions.size(); r-- > 0 && plan.statements[k].reductions.size() > 1;)
        attempt([&](RandomPlan& p) {
          p.statements[k].reductions.erase(p.statements[k].reductions.begin() + static_cast<std::ptrdiff_t>(r));
        });
      for (std::size_t c = plan.statements[k].clauses.size(); c-- > 0;)
        attempt([&](RandomPlan& p) {
          p.statements[k].clauses.erase(p.statements[k].clauses.begin() + static_cast<std::ptrdiff_t>(c));
        });
      attempt([&](RandomPlan& p) { p.statements[k].is_fresh = false; });
      attempt([&](RandomPlan& p) { p.statements[k].is_pull = false; });
      attempt([&](RandomPlan& p) { p.statements[k].is_any_order = false; });
      attempt([&](RandomPlan& p) { p.statements[k].claims_corresponding = false; });
      for (std::size_t r = 0; r < plan.statements[k].reductions.size(); ++r) {
        const RandomReduction before = plan.statements[k].reductions[r];
        if (before.op != "assign" && !attempt([&](RandomPlan& p) { p.statements[k].reductions[r].op = "assign"; }) &&
            before.op != "sum")
          attempt([&](RandomPlan& p) { p.statements[k].reductions[r].op = "sum"; });
        for (const RandomBuffer& b : plan.buffers)
          if (b.shape.size() == 1 && !before.value.ends_with("[0]"))
            attempt([&](RandomPlan& p) { p.statements[k].reductions[r].value = b.name + "[0]"; });
      }
    }
    for (std::size_t b = plan.buffers.size(); b-- > 0;) {
      attempt([&](RandomPlan& p) { p.buffers.erase(p.buffers.begin() + static_cast<std::ptrdiff_t>(b)); });
      if (b < plan.buffers.size()) attempt([&](RandomPlan& p) { p.buffers[b].strides.clear(); });
    }
  }
  return plan;
}

}  // namespace kplan::test
