#include "tests/programs/on_ranks.hpp"

namespace kplan::programs {

void on_ranks(const std::function<void(Engine&)>& program) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(std::move(transport));
      program(engine);
    });
}

}  // namespace kplan::programs
