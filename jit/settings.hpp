#pragma once
// KPLAN_JIT, read once.

namespace kplan::jit {

struct Settings {
  bool is_off = false;        ///< off: no machine code
  bool always_waits = false;  ///< wait: every compile waits until its kernels are compiled
};

/// Throws PlanError KP-E010 where the variable is none of its values.
const Settings& settings();

}  // namespace kplan::jit
