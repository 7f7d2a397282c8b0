#pragma once
// A square sparse matrix, distributed by blocks of rows, and its products with vectors distributed alike.

#include <Eigen/SparseCore>
#include <cstdint>
#include <kplan/kplan.hpp>
#include <span>
#include <vector>

#include "tests/programs/blocks.hpp"

namespace kplan::programs {

using SparseRows = Eigen::SparseMatrix<double, Eigen::RowMajor>;

/// Some rows of a matrix, each in the order of the whole matrix's columns. The columns are numbered as their rank sees
/// them: first its own block, then its ghosts, the columns of other blocks in which it has entries.
struct LocalRows {
  LocalRows(const Blocks& blocks, int rank, const SparseRows& rows);

  std::size_t row_count;
  std::vector<std::size_t> first, column;  ///< the entries of row i are first[i] ... first[i + 1] - 1
  std::vector<double> value;
  std::vector<std::int32_t> ghost_owner;
  std::vector<std::int64_t> ghost_index;  ///< where a ghost stands in its owner's block
};

class DistributedMatrix {
 public:
  /// Collective. `rows` are this rank's block; it knows nothing of the others'.
  DistributedMatrix(Engine& engine, const Blocks& blocks, const SparseRows& rows);

  /// Collective: this rank's entries of A x, from its entries of x.
  std::vector<double> multiply(std::span<const double> x);
  /// Collective: this rank's entries of A^T x, from its entries of x.
  std::vector<double> multiply_transposed(std::span<const double> x);

 private:
  LocalRows rows_;
  std::vector<double> vector_;  ///< a value for every column
  Executable fetch_, contribute_;
};

}  // namespace kplan::programs
