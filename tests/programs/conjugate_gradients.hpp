#pragma once
// Conjugate gradients on a distributed matrix (Hestenes and Stiefel, 1952; Saad, Iterative Methods for Sparse Linear
// Systems, algorithm 6.18).

#include "tests/programs/distributed_matrix.hpp"

namespace kplan::programs {

struct Solution {
  std::vector<double> x;  ///< this rank's entries
  std::int64_t step_count = 0;
};

/// Collective: solves A x = b for a symmetric positive definite A, from x = 0, until |r| <= tolerance |b| or after
/// `most_steps`. Every rank takes the same decisions, as all see the same bits.
Solution solve(Engine& engine, DistributedMatrix& a, std::span<const double> b, double tolerance,
               std::int64_t most_steps);

}  // namespace kplan::programs
