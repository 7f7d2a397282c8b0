#include "tests/programs/matrices.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>
#include <unsupported/Eigen/SparseExtra>

namespace kplan::programs {
namespace {

using Entries = std::map<std::pair<int, int>, double>;

SparseRows matrix_of(int rows, const Entries& entries) {
  std::vector<Eigen::Triplet<double>> triplets;
  for (const auto& [at, value] : entries) triplets.emplace_back(at.first, at.second, value);
  SparseRows out(rows, rows);
  out.setFromTriplets(triplets.begin(), triplets.end());
  return out;
}

}  // namespace

SparseRows laplacian(int width, int height) {
  Entries entries;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const int here = y * width + x;
      entries[{here, here}] = 4;
      if (x > 0) entries[{here, here - 1}] = entries[{here - 1, here}] = -1;
      if (y > 0) entries[{here, here - width}] = entries[{here - width, here}] = -1;
    }
  return matrix_of(width * height, entries);
}

SparseRows band(int rows, int reach) {
  Entries entries;
  for (int i = 0; i < rows; ++i)
    for (int j = std::max(0, i - reach); j <= std::min(rows - 1, i + reach); ++j)
      entries[{i, j}] = std::sin(i + 2.0 * j) / (1 + std::abs(i - j));
  return matrix_of(rows, entries);
}

SparseRows with_dense_rows(int rows, int dense_rows) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> value(-1, 1);
  std::uniform_int_distribution<int> row(0, rows - 1);
  Entries entries;
  const auto add = [&](int i, int j) {
    if (i != j) entries[{i, j}] = entries[{j, i}] = value(random);
  };
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < 3; ++k) add(i, row(random));
  for (int k = 0; k < dense_rows; ++k)
    for (int j = 0, i = row(random); j < rows; ++j) add(i, j);
  std::vector<double> sums(static_cast<std::size_t>(rows), 1.0);
  for (const auto& [at, v] : entries) sums[static_cast<std::size_t>(at.first)] += std::abs(v);
  for (int i = 0; i < rows; ++i) entries[{i, i}] = sums[static_cast<std::size_t>(i)];
  return matrix_of(rows, entries);
}

SparseRows with_empty_rows(int rows) {
  std::mt19937 random(2);
  std::uniform_int_distribution<int> value(-9, 9), column(0, rows - 1);
  Entries entries;
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < 5 && i % 3 != 0; ++k) entries[{i, column(random) / 2 * 2}] = value(random);
  return matrix_of(rows, entries);
}

SparseRows read_matrix_market(const std::string& path) {
  int symmetry = 0;
  bool is_complex = false, is_dense = false;
  SparseRows stored;
  if (!Eigen::getMarketHeader(path, symmetry, is_complex, is_dense) || is_complex || is_dense ||
      !Eigen::loadMarket(stored, path))
    throw std::runtime_error("not a Matrix Market file of a sparse real matrix: " + path);
  if (symmetry == Eigen::Symmetric) return stored.selfadjointView<Eigen::Lower>();
  return stored;
}

SparseRows mesh() { return read_matrix_market(KPLAN_SOURCE_DIR "/tests/programs/mesh.mtx"); }

}  // namespace kplan::programs
