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

KnownPatterns::KnownPatterns(const BoundPlan& bound, const Statement& s, int most_new)
    : can_be_kept_(hangs_on_parameters(*bound.model, s)), most_new_(most_new) {
  const PlanModel& plan = *bound.model;
  const VaryingNames names = varying_names(plan, s);
  parameters_.assign(names.parameters.begin(), names.parameters.end());
  can_settle_ = can_be_kept_ && std::ranges::all_of(parameters_, [&](int p) {
                  return plan.parameters[static_cast<std::size_t>(p)].is_uniform;
                });
  if (!can_be_kept_) return;
  for (const VaryingExpression& e : varying_expressions(plan, s)) {
    Deciding& out = deciding_.emplace_back(Deciding{e, IndexProgram(*e.value, bound.state.size)});
    if (!e.modulus) continue;
    try {
      out.modulus = evaluate_index(*e.modulus, {.state = &bound.state});
    } catch (const EvaluationFault&) {  // then the pattern has none either
    }
  }
}

/// Throws EvaluationFault where it has none.
[[gnu::hot]] ScalarValue KnownPatterns::value_of(const Deciding& e, const RankState& state) const {
  constexpr std::int64_t largest = std::int64_t{1} << 40;  // sums of larger ones may not fit, which is an error
  std::int64_t value = 0;
  if (!e.value.is_complete() || !e.value.evaluate(state.parameters, value)) {
    const ScalarValue out = kplan::evaluate(*e.expression.value, {.state = &state});
    if (e.modulus == 0) return out;
    value = out.as_integer();
  }
  if (e.modulus != 0 && value > -largest && value < largest) value = apply_index(Operation::mod, value, e.modulus, {});
  return ScalarValue::integer(value);
}

[[gnu::hot]] void KnownPatterns::find_key(const RankState& state) {
  key_.clear();
  const auto add = [this](const ScalarValue& value) { key_.insert(key_.end(), {value.bits[0], value.bits[1]}); };
  try {
    for (const Deciding& e : deciding_) add(value_of(e, state));
  } catch (const EvaluationFault&) {  // finding the pattern says what is wrong, if it comes to that
    key_.assign(1, 0);                // as long as no other
    for (const int p : parameters_) add(state.parameters[static_cast<std::size_t>(p)]);
  }
}

[[gnu::hot]] FoundPattern* KnownPatterns::recall(const RankState& state) {
  if (!can_be_kept_) return nullptr;
  find_key(state);
  const auto known = patterns_.find(key_);
  if (known == patterns_.end()) return nullptr;
  FoundPattern& out = known->second;
  out.bound->state.parameters = state.parameters;  // others than those of the key may have changed
  for (std::optional<StatementProgram>* program : {&out.sending, &out.receiving})
    if (*program) (*program)->set_varying(state.parameters);
  return &out;
}

[[gnu::hot]] KnownPatterns::Standing KnownPatterns::meet() {
  if (meetings_.size() >= most_patterns && !meetings_.contains(key_)) meetings_.clear();
  int& meetings = meetings_[key_];
  if (meetings == settled) return Standing::is_settled;
  return meetings++ < most_new_ ? Standing::is_new : Standing::was_met;
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
  FoundPattern& kept = patterns_[key_];
  kept = {};
  kept.bound = std::exchange(found.bound, std::nullopt);  // what has been made of another pattern stays
  kept.schedule = std::exchange(found.schedule, {});
  return &kept;
}

}  // namespace kplan
