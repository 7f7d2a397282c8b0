// Random plans over MPI: every process draws the same plans for as many ranks as there are processes, runs its own
// rank, and compares its memory with the reference interpreter's. Environment: KPLAN_SEED, KPLAN_PLANS.
#include <fmt/format.h>

#include <cstdlib>

#include "kplan/kplan.hpp"
#include "tests/engine/random_plan.hpp"

using namespace kplan;
using namespace kplan::test;

int main() {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  const std::uint64_t seed = number("KPLAN_SEED", 20261122), plans = number("KPLAN_PLANS", 300);
  auto transport = transport::mpi_world();
  const auto rank = static_cast<std::size_t>(transport->rank());
  int identical = 0, failed = 0;
  for (std::uint64_t k = 0; k < plans; ++k) {
    std::mt19937_64 random(seed + k);
    RandomPlan drawn = draw_plan(random);
    drawn.ranks = transport->size();
    Expectation expected = expectation_of(drawn, 2);
    if (!expected.plan) continue;
    std::string mine;
    try {
      run_engine(transport, *expected.plan, expected.before[rank], 2);
      mine = expected.error.empty()
                 ? difference(expected.plan->model(), expected.after[rank], expected.before[rank], rank)
                 : "the engine succeeds, the reference does not: " + expected.error;
    } catch (const TransportError& e) {
      fmt::print(stderr, "seed {}, rank {}: {}\n", seed + k, rank, e.what());
      return 1;  // nothing can be gathered any more
    } catch (const Error& e) {
      if (expected.error.empty()) mine = fmt::format("the reference succeeds, the engine does not: {}", e.what());
    }
    (expected.error.empty() ? identical : failed) += 1;
    for (const std::string& theirs : transport->allgather(mine, transport::Clock::now() + std::chrono::seconds(60))) {
      if (theirs.empty()) continue;
      if (rank == 0) fmt::print(stderr, "seed {}, {} ranks: {}\n{}\n", seed + k, drawn.ranks, theirs, drawn.to_json());
      return 1;
    }
  }
  if (rank == 0)
    fmt::print("{} ranks: {} plans identical, {} failed on both sides\n", transport->size(), identical, failed);
  return identical > failed / 2 ? 0 : 1;
}
