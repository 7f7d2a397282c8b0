#include "engine/runtime/known_patterns.hpp"

#include <algorithm>
#include <utility>

namespace kplan {
namespace {

constexpr std::size_t most_patterns = 1024;
constexpr std::int64_t most_elements = std::int64_t{1} << 22;

}  // namespace

[[gnu::hot]] std::size_t KnownPatterns::KeyHash::operator()(const Key& key) const {
  std::uint64_t out = 0;
  for (const std::uint64_t word : key) out = mixed(out, word);
  return out;
}

KnownPatterns::KnownPatterns(const PlanModel& plan, const Statement& s) {
  const VaryingNames names = varying_names(plan, s);
  can_be_kept_ = !is_told(infer_knowledge(plan, s)) && names.buffers.empty();
  parameters_.assign(names.parameters.begin(), names.parameters.end());
  can_settle_ = can_be_kept_ && std::ranges::all_of(parameters_, [&](int p) {
                  return plan.parameters[static_cast<std::size_t>(p)].is_uniform;
                });
}

[[gnu::hot]] FoundPattern* KnownPatterns::recall(const RankState& state) {
  if (!can_be_kept_) return nullptr;
  key_.clear();
  for (const int p : parameters_) {
    const ScalarValue& value = state.parameters[static_cast<std::size_t>(p)];
    key_.insert(key_.end(), {value.bits[0], value.bits[1]});
  }
  const auto known = patterns_.find(key_);
  if (known == patterns_.end()) return nullptr;
  FoundPattern& out = known->second;
  out.bound->state.parameters = state.parameters;  // others than those of the key may have changed
  for (std::optional<StatementProgram>* program : {&out.sending, &out.receiving})
    if (*program) (*program)->set_varying(state.parameters);
  return &out;
}

[[gnu::hot]] KnownPatterns::Standing KnownPatterns::meet() {
  if (const auto known = standings_.find(key_); known != standings_.end()) return known->second;
  if (standings_.size() >= most_patterns) standings_.clear();
  standings_[key_] = Standing::was_met;
  return Standing::is_new;
}

FoundPattern* KnownPatterns::keep(FoundPattern& found) {
  std::int64_t elements = 1;
  for (const auto* messages : {&found.schedule.sends, &found.schedule.receives, &found.schedule.local_send})
    for (const Message& m : *messages) elements += m.element_count;
  if (!can_be_kept_ || elements > most_elements) return &found;
  if (patterns_.size() >= most_patterns || elements_ + elements > most_elements) {
    patterns_.clear();
    elements_ = 0;
  }
  elements_ += elements;
  return &(patterns_[key_] = std::exchange(found, {}));
}

}  // namespace kplan
