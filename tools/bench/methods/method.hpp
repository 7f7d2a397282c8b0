#pragma once
// A way to do a workload's exchange.

#include <functional>
#include <memory>
#include <string>

namespace kplan::bench {

struct Method {
  std::string name;
  /// Collective: sets up what can be set up once, and returns what every exchange calls. Throws on all ranks or none.
  std::function<std::function<void()>()> prepare;
};

/// A method from a class that is made once and then called.
template <class Runner, class... Arguments>
Method method_of(std::string name, Arguments... arguments) {
  return {std::move(name), [arguments...]() -> std::function<void()> {
            auto runner = std::make_shared<Runner>(arguments...);
            return [runner] { runner->run(); };
          }};
}

}  // namespace kplan::bench
