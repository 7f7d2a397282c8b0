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

/// So many runs, some begun and waited for apart; which ones hangs on the rank.
inline void run_either_way(Executable& x, int rank, int runs) {
  for (int k = 0; k < runs; ++k) {
    if ((k / (rank + 2)) % 2 == 0) {
      x.run();
    } else {
      x.start();
      x.wait();
    }
  }
}

}  // namespace kplan::tests
