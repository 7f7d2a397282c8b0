#include "tests/programs/on_ranks.hpp"

namespace kplan::programs {

namespace {

#if defined(KPLAN_SANITIZE_THREAD)
constexpr int numbers_of_ranks[] = {1, 2, 3, 5, 8};  // all take twice as long, which is minutes there
#else
constexpr int numbers_of_ranks[] = {1, 2, 3, 4, 5, 6, 7, 8};
#endif

}  // namespace

void on_ranks(const std::function<void(Engine&)>& program) {
  for (const int ranks : numbers_of_ranks)
    transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(std::move(transport));
      program(engine);
    });
}

}  // namespace kplan::programs
