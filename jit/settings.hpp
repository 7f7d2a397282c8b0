#pragma once
// KPLAN_JIT, read once.

namespace kplan::jit {

struct Settings {
  bool is_off = false;        ///< off: no machine code
  bool always_waits = false;  ///< wait: every compile waits until its kernels are compiled
};

const Settings& settings();

}  // namespace kplan::jit
