#pragma once
// Random plans for differential tests: drawn with types, slices, filters, modular ranks, several reductions and
// aliasing, mostly valid, sometimes not. What is drawn is kept as texts that can be dropped one by one, so that a
// failing plan shrinks.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kplan/plan.hpp"
#include "kplan/transport.hpp"
#include "plans/reference.hpp"

namespace kplan::test {

struct RandomReduction {
  std::string place, receiver, op, value, sender;
};

struct RandomStatement {
  std::vector<RandomReduction> reductions;
  std::vector<std::string> clauses;
  std::string group;
  bool is_pull = false, is_fresh = false, is_any_order = false, claims_corresponding = false;
};

struct RandomBuffer {
  std::string name, type;  ///< a scalar's name, `pair` or `located`
  std::vector<int> shape;
  std::vector<int> strides;
  std::string marks;  ///< further JSON members
  bool is_fixed = false, is_uniform = false;
};

struct RandomPlan {
  int ranks = 1;
  std::uint64_t data_seed = 0;
  std::vector<RandomBuffer> buffers;
  std::vector<RandomStatement> statements;

  std::string to_json() const;
};

RandomPlan draw_plan(std::mt19937_64& random);
/// One whose ranks send letters, known to none but them, to others than the run before: some of what draw_plan draws.
RandomPlan draw_letters(std::mt19937_64& random);

/// The smallest plan found that still fails, by dropping and simplifying parts.
RandomPlan shrunk(RandomPlan plan, const std::function<bool(const RandomPlan&)>& fails);

/// How a plan did.
struct Outcome {
  enum class Kind { identical, both_failed, different } kind = Kind::identical;
  std::string what;
  std::vector<std::string> classes;  ///< of the statements: `sender, varying, in a group`
};

/// A plan with memory before and, by the reference interpreter, after some runs; no plan when it cannot be read.
struct Expectation {
  std::optional<Plan> plan;
  std::vector<ReferenceRank> before, after;
  std::string error;  ///< what the reader or the interpreter said, if anything
};
Expectation expectation_of(const RandomPlan& plan, int runs);

/// The values of varying parameters in run number `run` on a rank, by name.
std::vector<std::pair<std::string, std::int64_t>> varying_values(int run, std::size_t rank);

/// Compiles and runs the plan as one rank of the transport, on that rank's memory.
void run_engine(std::shared_ptr<transport::Transport> transport, const Plan& plan, ReferenceRank& mine, int runs);

/// The first element that differs, or nothing.
std::string difference(const PlanModel& model, const ReferenceRank& expected, const ReferenceRank& actual,
                       std::size_t rank);

/// Runs the plan with the reference interpreter and with engines on threads, `runs` times in a row, and compares all
/// memory.
Outcome compare_with_reference(const RandomPlan& plan, int runs = 2);

}  // namespace kplan::test
