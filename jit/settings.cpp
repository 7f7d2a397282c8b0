// How it works: the variable is looked at when the first kernel is asked for; any other word means the default.
#include "jit/settings.hpp"

#include <cstdlib>
#include <string_view>

namespace kplan::jit {

const Settings& settings() {
  static const Settings the = [] {
    const char* jit = std::getenv("KPLAN_JIT");
    const std::string_view word = jit == nullptr ? "" : jit;
    return Settings{word == "off", word == "wait"};
  }();
  return the;
}

}  // namespace kplan::jit
