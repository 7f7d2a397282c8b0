#pragma once
// Matrices to try the programs on: some structured, some random (the same on every rank and every call), one from a
// file.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/programs/distributed_matrix.hpp"

namespace kplan::programs {

/// The five-point Laplacian on a grid, zero outside. Symmetric positive definite; all entries are integers.
SparseRows laplacian(int width, int height);
/// Entries of no symmetry on the diagonals -reach ... reach.
SparseRows band(int rows, int reach);
/// A few random entries a row, symmetric; some rows, and so columns, are full. Positive definite by its diagonal.
SparseRows with_dense_rows(int rows, int dense_rows);
/// Random integers, unsymmetric; every third row is empty, and so are some columns.
SparseRows with_empty_rows(int rows);
/// Reads a Matrix Market file of real numbers, both triangles where it holds one. Throws std::runtime_error.
SparseRows read_matrix_market(const std::string& path);
/// A small finite-element matrix of an unstructured mesh; the file says how it was made. Symmetric positive definite.
SparseRows mesh();

}  // namespace kplan::programs
