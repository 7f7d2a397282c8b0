#include "engine/plan_cache.hpp"

#include <algorithm>
#include <cstring>

#include "plans/hash.hpp"

namespace kplan {
namespace {

/// What a rank could use.
struct Offer {
  std::uint64_t entry = 0;  ///< 0: none
  std::uint64_t idle = 0;   ///< the serial of the oldest idle state; 0: none
  bool operator==(const Offer&) const = default;
};

}  // namespace

std::string PlanCache::key_of(const Plan& plan, const Values& values, Code code) {
  std::string out = plan.digest();
  out += static_cast<char>(code);
  for (const auto& [name, value] : values) {
    out += '\0' + name + '\0';
    if (!value.is_array()) {
      char bytes[sizeof(std::complex<double>)] = {};
      std::visit([&](const auto& v) { std::memcpy(bytes, &v, sizeof v); }, value.scalar());
      out += static_cast<char>(value.scalar().index());
      out.append(bytes, sizeof bytes);
      continue;
    }
    const Hash128 hash = hash128(value.bytes());
    const std::uint64_t size = value.bytes().size();
    out += static_cast<char>(value.is_records() ? 15 : 16 + static_cast<int>(value.array_type()));
    out.append(reinterpret_cast<const char*>(&hash), sizeof hash);
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
  }
  return out;
}

PlanCache::Entries::iterator PlanCache::find_key(const std::string& key) {
  return std::ranges::find(entries_, key, &Entry::key);
}

PlanCache::Found PlanCache::find(transport::Transport& transport, const std::string& key,
                                 transport::Clock::time_point deadline) {
  const auto entry = find_key(key);
  Offer mine;
  if (entry != entries_.end()) {
    mine.entry = entry->id;
    for (const auto& state : entry->idle)
      if (mine.idle == 0 || state->serial < mine.idle) mine.idle = state->serial;
  }
  const std::string bytes(reinterpret_cast<const char*>(&mine), sizeof mine);
  bool has_same_entry = mine.entry != 0, has_same_idle = mine.idle != 0;
  for (const std::string& other : transport.allgather(bytes, deadline)) {
    Offer theirs;
    if (other.size() == sizeof theirs) std::memcpy(&theirs, other.data(), sizeof theirs);
    has_same_entry = has_same_entry && theirs.entry == mine.entry;
    has_same_idle = has_same_idle && theirs.idle == mine.idle;
  }
  Found out;
  if (!has_same_entry) return out;
  entries_.splice(entries_.begin(), entries_, entry);
  if (!has_same_idle) {
    out.alike = !entry->in_use.empty() ? entry->in_use.front() : entry->idle.front().get();
    return out;
  }
  const auto idle = std::ranges::find(entry->idle, mine.idle, [](const auto& s) { return s->serial; });
  out.idle = std::move(*idle);
  entry->idle.erase(idle);
  --idle_count_;
  entry->in_use.push_back(out.idle.get());
  return out;
}

void PlanCache::add(const std::shared_ptr<PlanCache>& self, const std::string& key, const Plan& plan,
                    Executable::State& state) {
  ++last_id_;
  state.serial = ++last_serial_;
  state.cache = self;
  auto entry = find_key(key);
  if (entry == entries_.end()) {
    entries_.emplace_front();
    entry = entries_.begin();
    entry->key = key;
    for (const Statement& s : plan.model().statements)
      for (const Reduction& r : s.reductions)
        if (r.is_native) entry->native_operators.push_back(r.operator_name);
  }
  // Where some rank knew the plan and another did not, all call it by a new number.
  entry->id = last_id_;
  for (auto& idle : entry->idle) idle->entry = last_id_;
  state.entry = last_id_;
  entry->in_use.push_back(&state);
}

void PlanCache::give_back(std::unique_ptr<Executable::State> state) {
  if (!state) return;
  if (const std::shared_ptr<PlanCache> cache = state->cache.lock()) cache->keep(std::move(state));
}

void PlanCache::keep(std::unique_ptr<Executable::State> state) {
  const auto entry = std::ranges::find_if(
      entries_, [&](const Entry& e) { return std::ranges::find(e.in_use, state.get()) != e.in_use.end(); });
  if (entry == entries_.end()) return;
  std::erase(entry->in_use, state.get());
  if (state->runner.is_started() || state->runner.is_broken()) {
    if (entry->in_use.empty() && entry->idle.empty()) entries_.erase(entry);
    return;
  }
  state->reset();
  entry->idle.push_back(std::move(state));
  ++idle_count_;
  trim();
}

/// Ends the idle states of the plan that was used longest ago.
void PlanCache::trim() {
  for (auto entry = entries_.end(); idle_count_ > most_idle && entry != entries_.begin();) {
    --entry;
    while (idle_count_ > most_idle && !entry->idle.empty()) {
      entry->idle.erase(entry->idle.begin());
      --idle_count_;
    }
    if (entry->in_use.empty() && entry->idle.empty()) entry = entries_.erase(entry);
  }
}

void PlanCache::forget(const std::string& native_operator) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool uses = std::ranges::find(entry->native_operators, native_operator) != entry->native_operators.end();
    if (!uses) {
      ++entry;
      continue;
    }
    idle_count_ -= entry->idle.size();
    entry = entries_.erase(entry);
  }
}

}  // namespace kplan
