// Conjugate gradients on distributed rows, against a direct solution.
#include "tests/programs/conjugate_gradients.hpp"

#include <Eigen/SparseCholesky>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/programs/matrices.hpp"
#include "tests/programs/on_ranks.hpp"

using namespace kplan;
using namespace kplan::programs;

namespace {

/// A number of every rank, on every rank: `all[r]` is that of rank r.
std::vector<std::int64_t> gather(Engine& engine, std::int64_t mine) {
  PlanBuilder plan("gather");
  plan.buffer("mine", Scalar::i64, {}).buffer("all", Scalar::i64, {"size"});
  plan.communicate("gather", "all[s]@r <<= mine@s where s in world, r in world");
  std::vector<std::int64_t> all(static_cast<std::size_t>(engine.size()));
  Executable run = engine.compile(plan.build());
  run.bind("mine", mine);
  run.bind("all", all);
  run.run();
  return all;
}

// The condition numbers are below 500, and so is the error, relative to the solution, over the residual, relative to b.
void check_solution(const SparseRows& matrix) {
  constexpr double tolerance = 1e-11;
  const auto entry = [](Eigen::Index i) { return std::cos(3.0 * static_cast<double>(i)) + 0.5; };
  const Eigen::VectorXd b = Eigen::VectorXd::NullaryExpr(matrix.rows(), entry);
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factors(matrix);
  const Eigen::VectorXd expected = factors.solve(b);
  on_ranks([&](Engine& engine) {
    const Blocks blocks{matrix.rows(), engine.size()};
    const std::int64_t first = blocks.first(engine.rank()), count = blocks.count(engine.rank());
    DistributedMatrix mine(engine, blocks, matrix.middleRows(first, count));
    const std::span<const double> my_b(b.data() + first, static_cast<std::size_t>(count));
    const Solution got = solve(engine, mine, my_b, tolerance, matrix.rows());

    claim(got.step_count < matrix.rows(), "it converges");
    const auto steps = gather(engine, got.step_count);
    claim(std::ranges::count(steps, got.step_count) == engine.size(), "all ranks take as many steps");
    const Eigen::Map<const Eigen::VectorXd> x(got.x.data(), count);
    claim((x - expected.segment(first, count)).norm() <= 500 * tolerance * expected.norm(),
          "it is the serial solution");
  });
}

}  // namespace

TEST_CASE("conjugate gradients solve the five-point Laplacian") { check_solution(laplacian(16, 15)); }
TEST_CASE("conjugate gradients solve a system with dense rows") { check_solution(with_dense_rows(150, 3)); }
TEST_CASE("conjugate gradients solve the finite-element system of an unstructured mesh") { check_solution(mesh()); }
