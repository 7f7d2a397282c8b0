#pragma once
// What the environment sets: KPLAN_JIT, read once, and what concerns code on disk and the code generator.

#include <cstdint>
#include <string_view>
#include <vector>

namespace kplan::jit {

struct Settings {
  bool is_off = false;        ///< off: no machine code
  bool always_waits = false;  ///< wait: every compile waits until its kernels are compiled
};

/// Throws PlanError KP-E010 where the variable is none of its values.
const Settings& settings();

/// Whether code is kept on disk: KPLAN_CACHE is not `off`. Throws PlanError KP-E011 for what is not `on` either.
bool keeps_code();
/// KPLAN_CACHE_LIMIT, MiB there, in bytes; 256 MiB by default. Throws PlanError KP-E011 for no number from 1 to 2^30.
std::uint64_t cache_limit_bytes();

/// Reads all variables that this folder goes by, and returns their names. Throws PlanError for the first that cannot be
/// what it is, KP-E012 where KPLAN_PLUGIN names no library that can be read.
std::vector<std::string_view> checked_variables();

}  // namespace kplan::jit
