#pragma once
// Two ranks as threads, each with an engine.

#include <functional>
#include <vector>

#include "kplan/kplan.hpp"

namespace kplan::tests {

/// Runs `body` on two ranks; whether it was true on both. Catch2's assertions are not for several threads.
inline bool holds_on_both(const std::function<bool(Engine&)>& body) {
  std::vector<char> right(2);
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    right[static_cast<std::size_t>(engine.rank())] = body(engine);
  });
  return right == std::vector<char>{1, 1};
}

}  // namespace kplan::tests
