// Random plans over MPI, or libfabric: every process draws the same plans for as many ranks as there are processes,
// runs its own rank, and compares its memory with the reference interpreter's. Environment: KPLAN_SEED, KPLAN_PLANS,
// KPLAN_RUNS of each.
//   random_plans [mpi|ofi]
#include <fmt/format.h>

#include <cstdlib>

#include "kplan/kplan.hpp"
#include "tests/engine/random_plan.hpp"
#include "tests/number_from_environment.hpp"

using namespace kplan;
using namespace kplan::test;

int main(int argc, char** argv) {
  const std::uint64_t seed = number_from_environment("KPLAN_SEED", 20261122),
                      plans = number_from_environment("KPLAN_PLANS", 300);
  const int runs = static_cast<int>(number_from_environment("KPLAN_RUNS", 2));
  auto transport = argc > 1 && std::string_view(argv[1]) == "ofi" ? transport::ofi_world() : transport::mpi_world();
  const auto rank = static_cast<std::size_t>(transport->rank());
  int identical = 0, both_failed = 0;
  for (std::uint64_t k = 0; k < plans; ++k) {
    std::mt19937_64 random(seed + k);
    RandomPlan drawn = draw_plan(random);
    drawn.ranks = transport->size();
    Expectation expected = expectation_of(drawn, runs);
    if (!expected.plan) continue;
    const std::string failed = "failed";
    std::string mine;
    try {
      run_engine(transport, *expected.plan, expected.before[rank], runs);
      if (expected.error.empty())
        mine = difference(expected.plan->model(), expected.after[rank], expected.before[rank], rank);
    } catch (const TransportError& e) {
      fmt::print(stderr, "seed {}, rank {}: {}\n", seed + k, rank, e.what());
      return 1;  // nothing can be gathered any more
    } catch (const Error& e) {
      mine = expected.error.empty() ? fmt::format("the reference succeeds, the engine does not: {}", e.what()) : failed;
    }
    ++(expected.error.empty() ? identical : both_failed);
    // What is wrong at a run may be seen by the receiving rank alone.
    bool has_failed = false;
    std::string problem;
    for (const std::string& theirs : transport->allgather(mine, transport::Clock::now() + std::chrono::seconds(60))) {
      if (theirs == failed) has_failed = true;
      else if (!theirs.empty()) problem = theirs;
    }
    if (!expected.error.empty() && !has_failed)
      problem = "the engine succeeds, the reference does not: " + expected.error;
    if (problem.empty()) continue;
    if (rank == 0) fmt::print(stderr, "seed {}, {} ranks: {}\n{}\n", seed + k, drawn.ranks, problem, drawn.to_json());
    return 1;
  }
  if (rank == 0)
    fmt::print("{} ranks: {} plans identical, {} failed on both sides\n", transport->size(), identical, both_failed);
  return identical > both_failed / 2 ? 0 : 1;
}
