#pragma once
// Executables that a program is done with wait here, with their channels open, for the same plan to be compiled again
// with the same values. All ranks take the same one, or none does.

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "engine/executable_state.hpp"

namespace kplan {

class PlanCache {
 public:
  /// What a program asks to be compiled, as bytes: equal for equal ones.
  static std::string key_of(const Plan& plan, const Values& values, Code code);

  struct Found {
    std::unique_ptr<Executable::State> idle;   ///< to be used as it is
    const Executable::State* alike = nullptr;  ///< or one in use, whose schedule can be shared
  };
  /// Collective: one small all-gather.
  Found find(transport::Transport& transport, const std::string& key, transport::Clock::time_point deadline);

  /// Collective in order: notes a state that was just made. `self` is this cache.
  void add(const std::shared_ptr<PlanCache>& self, const std::string& key, const Plan& plan, Executable::State& state);

  /// Takes an executable back from the program, or ends it.
  static void give_back(std::unique_ptr<Executable::State> state);

  /// Forgets plans that use the native operator.
  void forget(const std::string& native_operator);

 private:
  static constexpr std::size_t most_idle = 64;

  /// One plan with values. It lives as long as some state of it, in use or idle.
  struct Entry {
    std::string key;
    std::uint64_t id = 0;
    std::vector<std::string> native_operators;
    std::vector<const Executable::State*> in_use;
    std::vector<std::unique_ptr<Executable::State>> idle;
  };
  using Entries = std::list<Entry>;  ///< used last first

  Entries::iterator find_key(const std::string& key);
  void keep(std::unique_ptr<Executable::State> state);
  void trim();

  Entries entries_;
  std::size_t idle_count_ = 0;
  std::uint64_t last_id_ = 0, last_serial_ = 0;  ///< count collective calls, and so are the same on all ranks
};

}  // namespace kplan
