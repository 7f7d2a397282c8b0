// Sparse matrix-vector products on distributed rows, against Eigen's.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/programs/matrices.hpp"
#include "tests/programs/on_ranks.hpp"

using namespace kplan;
using namespace kplan::programs;

namespace {

struct Case {
  std::string name;
  SparseRows matrix;
  bool is_integer;  ///< all entries are
};

/// Also with fewer rows than ranks, and with one row.
std::vector<Case> cases() {
  return {{"laplacian", laplacian(17, 13), true},
          {"band", band(101, 7), false},
          {"dense rows", with_dense_rows(150, 3), false},
          {"empty rows", with_empty_rows(133), true},
          {"mesh", mesh(), false},
          {"small", laplacian(5, 1), true},
          {"one row", laplacian(1, 1), true}};
}

std::vector<double> block_of(const Eigen::VectorXd& x, const Blocks& blocks, int rank) {
  return {x.data() + blocks.first(rank), x.data() + blocks.first(rank + 1)};
}

/// Gives every rank its rows of every matrix, and its block of a vector. Three times, each with another one.
template <class Check>
void on_every_matrix(const Check& check) {
  const std::vector<Case> all = cases();
  on_ranks([&](Engine& engine) {
    for (const Case& c : all) {
      const Blocks blocks{c.matrix.rows(), engine.size()};
      const int rank = engine.rank();
      DistributedMatrix mine(engine, blocks, c.matrix.middleRows(blocks.first(rank), blocks.count(rank)));
      for (int run = 0; run < 3; ++run) {
        const auto entry = [&](Eigen::Index i) {
          return c.is_integer ? static_cast<double>((7 * i + run) % 11 - 5)
                              : std::sin(static_cast<double>(i + 100 * run));
        };
        const Eigen::VectorXd x = Eigen::VectorXd::NullaryExpr(c.matrix.cols(), entry);
        check(c, mine, blocks, rank, x);
      }
    }
  });
}

}  // namespace

TEST_CASE("A x has the bits of the serial product: every row is summed in the order of its columns") {
  on_every_matrix([](const Case& c, DistributedMatrix& mine, const Blocks& blocks, int rank, const Eigen::VectorXd& x) {
    const Eigen::VectorXd expected = c.matrix * x;
    claim(mine.multiply(block_of(x, blocks, rank)) == block_of(expected, blocks, rank), c.name);
  });
}

// Ranks add up their own rows first, so the order is not the serial one: two sums of n terms differ by no more than
// 2 (n - 1) u times the sum of the terms' sizes (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2);
// the terms, products, are rounded alike. Where all numbers are integers, nothing is rounded.
TEST_CASE("A^T x agrees with the serial product as closely as another order of its sums allows") {
  on_every_matrix([](const Case& c, DistributedMatrix& mine, const Blocks& blocks, int rank, const Eigen::VectorXd& x) {
    const SparseRows transposed = c.matrix.transpose();
    const Eigen::VectorXd expected = transposed * x, size = transposed.cwiseAbs() * x.cwiseAbs();
    const std::vector<double> got = mine.multiply_transposed(block_of(x, blocks, rank));
    claim(std::ssize(got) == blocks.count(rank), c.name + ": as many entries as rows");
    for (std::size_t k = 0; k < got.size(); ++k) {
      const Eigen::Index i = blocks.first(rank) + static_cast<Eigen::Index>(k);
      const auto terms = static_cast<double>(transposed.row(i).nonZeros());
      const double unit = c.is_integer ? 0 : std::numeric_limits<double>::epsilon();
      claim(std::abs(got[k] - expected[i]) <= terms * unit * size[i], c.name + ", entry " + std::to_string(i));
    }
  });
}
