// How it works: the variable is looked at once, when the first engine is made or the first kernel is asked for.
#include "jit/settings.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include "kplan/error.hpp"

namespace kplan::jit {

const Settings& settings() {
  static const Settings the = [] {
    const char* jit = std::getenv("KPLAN_JIT");
    const std::string_view word = jit == nullptr ? "" : jit;
    if (!word.empty() && word != "off" && word != "wait" && word != "on")
      throw PlanError("KP-E010", "the environment variable KPLAN_JIT is `" + std::string(word) +
                                     "`; set it to `off` or `wait`, or unset it for `on`");
    return Settings{word == "off", word == "wait"};
  }();
  return the;
}

}  // namespace kplan::jit
