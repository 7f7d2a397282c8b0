#pragma once
// Finds and opens the code generator's plugin.

#include <string>

#include "jit/plugin.hpp"

namespace kplan::jit {

/// The plugin's functions, or null and the reason. The plugin stays open until the process ends.
struct LoadedPlugin {
  const CodeGenerator* generator = nullptr;
  std::string why_not;
};

/// Looks at KPLAN_PLUGIN, then next to the library that holds this code, then in the build tree. Cost:
/// milliseconds.
LoadedPlugin load_plugin();

}  // namespace kplan::jit
