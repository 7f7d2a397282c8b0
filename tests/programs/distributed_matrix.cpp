// How it works: before a product, the values of ghost columns are fetched from their owners, who do not know who wants
// what; after a transposed product, what has come together in ghost columns is added at their owners. Either is one
// statement, whose pattern is found once, when it is compiled.
#include "tests/programs/distributed_matrix.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace kplan::programs {
namespace {

PlanBuilder ghost_plan(const std::string& name) {
  PlanBuilder plan(name);
  plan.parameter("n_owned", Scalar::i64, Scope::private_)
      .parameter("n_ghost", Scalar::i64, Scope::private_)
      .index_buffer("ghost_owner", Scalar::i32, {"n_ghost"}, Scope::private_, Time::fixed)
      .index_buffer("ghost_index", Scalar::i64, {"n_ghost"}, Scope::private_, Time::fixed)
      .buffer("x", Scalar::f64, {"n_owned + n_ghost"});
  return plan;
}

Plan fetch() {
  PlanBuilder plan = ghost_plan("fetch-ghosts");
  plan.communicate("fetch",
                   "x[n_owned + k]@rank <<= x[remote_index]@owner "
                   "where k in {0 ... n_ghost-1}, remote_index = ghost_index[k], owner = ghost_owner[k]")
      .pull();
  return plan.build();
}

Plan contribute() {
  PlanBuilder plan = ghost_plan("add-ghosts");
  plan.communicate("contribute",
                   "x[remote_index]@owner << sum << x[n_owned + k]@rank "
                   "where k in {0 ... n_ghost-1}, remote_index = ghost_index[k], owner = ghost_owner[k]");
  return plan.build();
}

Values values(const LocalRows& rows) {
  return {{"n_owned", rows.row_count},
          {"n_ghost", rows.ghost_owner.size()},
          {"ghost_owner", rows.ghost_owner},
          {"ghost_index", rows.ghost_index}};
}

}  // namespace

LocalRows::LocalRows(const Blocks& blocks, int rank, const SparseRows& rows)
    : row_count(static_cast<std::size_t>(rows.rows())), first{0} {
  const std::int64_t begin = blocks.first(rank), end = blocks.first(rank + 1);
  const auto is_owned = [&](std::int64_t c) { return c >= begin && c < end; };
  std::map<std::int64_t, std::size_t> ghosts;
  for (Eigen::Index i = 0; i < rows.rows(); ++i)
    for (SparseRows::InnerIterator entry(rows, i); entry; ++entry)
      if (!is_owned(entry.col())) ghosts[entry.col()] = 0;
  for (auto& [c, local] : ghosts) {
    const int owner = blocks.owner(c);
    local = row_count + ghost_owner.size();
    ghost_owner.push_back(owner);
    ghost_index.push_back(c - blocks.first(owner));
  }
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    for (SparseRows::InnerIterator entry(rows, i); entry; ++entry) {
      const std::int64_t c = entry.col();
      column.push_back(is_owned(c) ? static_cast<std::size_t>(c - begin) : ghosts.at(c));
      value.push_back(entry.value());
    }
    first.push_back(column.size());
  }
}

DistributedMatrix::DistributedMatrix(Engine& engine, const Blocks& blocks, const SparseRows& rows)
    : rows_(blocks, engine.rank(), rows),
      vector_(rows_.row_count + rows_.ghost_owner.size()),
      fetch_(engine.compile(fetch(), values(rows_))),
      contribute_(engine.compile(contribute(), values(rows_))) {
  fetch_.bind("x", vector_);
  contribute_.bind("x", vector_);
}

std::vector<double> DistributedMatrix::multiply(std::span<const double> x) {
  std::ranges::copy(x, vector_.begin());
  fetch_.run();
  std::vector<double> y(rows_.row_count);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t e = rows_.first[i]; e < rows_.first[i + 1]; ++e) y[i] += rows_.value[e] * vector_[rows_.column[e]];
  return y;
}

std::vector<double> DistributedMatrix::multiply_transposed(std::span<const double> x) {
  std::ranges::fill(vector_, 0.0);
  for (std::size_t i = 0; i < rows_.row_count; ++i)
    for (std::size_t e = rows_.first[i]; e < rows_.first[i + 1]; ++e) vector_[rows_.column[e]] += rows_.value[e] * x[i];
  contribute_.run();
  return {vector_.begin(), vector_.begin() + static_cast<std::ptrdiff_t>(rows_.row_count)};
}

}  // namespace kplan::programs
