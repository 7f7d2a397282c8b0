// Distributed matrices and arrays in another order: block rows to block columns, the transpose of a matrix, the
// transposes between the steps of a three-dimensional FFT with slabs (one-dimensional decomposition, FFTW's transposed
// output) and with pencils (two-dimensional, the next dimension made contiguous).
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

/// Adds what this rank sends to `peer` and receives from it: the two ends of one message each way.
void add_links(Exchange& e, int peer, const std::function<std::pair<Nest, Nest>(int from, int to)>& ends) {
  const auto [leaving, entering_there] = ends(e.team.rank, peer);
  const auto [leaving_there, entering] = ends(peer, e.team.rank);
  if (peer != e.team.rank) e.sends.push_back({peer, 0, {leaving}, {entering_there}});
  e.receives.push_back({peer, 0, {entering}, {leaving_there}});
}

/// A has m = n / size rows of n, B n rows of m.
Case rows_to_columns(const Team& team, std::int64_t n) {
  const std::int64_t m = n / team.size;
  Exchange e{.team = team};
  e.arrays = {{Scalar::f64, {m, m * team.size}}, {Scalar::f64, {m * team.size, m}}};
  for (int peer = 0; peer < team.size; ++peer)
    add_links(e, peer, [&](int from, int to) {
      return std::pair(box(e.arrays[0], 0, {0, to * m}, {m, m}), box(e.arrays[1], 1, {from * m, 0}, {m, m}));
    });
  PlanBuilder builder("rows-to-columns");
  builder.parameter("m", Scalar::i64);
  builder.buffer("A", Scalar::f64, {"m", "m * size"}).buffer("B", Scalar::f64, {"m * size", "m"});
  builder.communicate("turn", "B[p*m : (p+1)*m, :]@q <<= A[:, q*m : (q+1)*m]@p where p in world, q in world");
  return case_of(std::move(e), {builder.build(), {{"m", m}}, {"A", "B"}});
}

/// T is the transpose of A, both by block rows.
Case transpose(const Team& team, std::int64_t n) {
  const std::int64_t m = n / team.size, columns = m * team.size;
  Exchange e{.team = team};
  e.arrays = {{Scalar::f64, {m, columns}}, {Scalar::f64, {m, columns}}};
  for (int peer = 0; peer < team.size; ++peer)
    add_links(e, peer, [&](int from, int to) {
      return std::pair(box(e.arrays[0], 0, {0, to * m}, {m, m}), Nest{1, from * m, {{m, 1}, {m, columns}}, {}, {}});
    });
  PlanBuilder builder("transpose");
  builder.parameter("m", Scalar::i64);
  builder.buffer("A", Scalar::f64, {"m", "m * size"}).buffer("T", Scalar::f64, {"m", "m * size"});
  builder.communicate("transpose",
                      "T[i, p*m + k]@q <<= A[k, q*m + i]@p where p in world, q in world, k in range(m), i in range(m)");
  return case_of(std::move(e), {builder.build(), {{"m", m}}, {"A", "T"}});
}

/// From slabs [n / size][n][n] to slabs [n / size of the second dimension][n][n].
Case slabs(const Team& team, std::int64_t n) {
  const std::int64_t m = n / team.size, rows = m * team.size;
  Exchange e{.team = team};
  e.arrays = {{Scalar::c128, {m, rows, n}}, {Scalar::c128, {m, rows, n}}};
  for (int peer = 0; peer < team.size; ++peer)
    add_links(e, peer, [&](int from, int to) {
      return std::pair(box(e.arrays[0], 0, {0, to * m, 0}, {m, m, n}),
                       Nest{1, from * m * n, {{m, n}, {m, rows * n}, {n, 1}}, {}, {}});
    });
  PlanBuilder builder("slabs");
  builder.parameter("m", Scalar::i64).parameter("n", Scalar::i64);
  builder.buffer("A", Scalar::c128, {"m", "m * size", "n"}).buffer("B", Scalar::c128, {"m", "m * size", "n"});
  builder.communicate("turn",
                      "B[j, p*m + i, :]@q <<= A[i, q*m + j, :]@p "
                      "where p in world, q in world, i in range(m), j in range(m)");
  return case_of(std::move(e), {builder.build(), {{"m", m}, {"n", n}}, {"A", "B"}});
}

/// A grid of p1 rows of p2 ranks: from [n / p1][n / p2][n] along z to [n / p1][n / p2][n] along y, within the rows.
Case pencils(const Team& team, std::int64_t n) {
  int p1 = 1;
  while (team.size % (2 * p1) == 0 && team.size / (2 * p1) >= 2 * p1) p1 *= 2;
  const int p2 = team.size / p1;
  const std::int64_t mx = n / p1, m = n / p2, full = m * p2;
  Exchange e{.team = team};
  e.arrays = {{Scalar::c128, {mx, m, full}}, {Scalar::c128, {mx, m, full}}};
  for (int column = 0; column < p2; ++column)
    add_links(e, team.rank / p2 * p2 + column, [&](int from, int to) {
      return std::pair(box(e.arrays[0], 0, {0, 0, to % p2 * m}, {mx, m, m}),
                       Nest{1, from % p2 * m, {{mx, m * full}, {m, 1}, {m, full}}, {}, {}});
    });
  PlanBuilder builder("pencils");
  builder.parameter("mx", Scalar::i64).parameter("m", Scalar::i64).parameter("p2", Scalar::i64);
  builder.buffer("A", Scalar::c128, {"mx", "m", "m * p2"}).buffer("B", Scalar::c128, {"mx", "m", "m * p2"});
  builder.communicate("turn",
                      "B[i, k, b*m + j]@a*p2 + c <<= A[i, j, c*m + k]@a*p2 + b where a in range(size / p2), "
                      "b in range(p2), c in range(p2), i in range(mx), j in range(m), k in range(m)");
  return case_of(std::move(e), {builder.build(), {{"mx", mx}, {"m", m}, {"p2", p2}}, {"A", "B"}});
}

}  // namespace

void add_transposes(std::vector<Workload>& to) {
  to.push_back({"block rows to block columns 2048", {}, [](const Team& t) { return rows_to_columns(t, 2048); }});
  to.push_back({"matrix transpose 2048", {}, [](const Team& t) { return transpose(t, 2048); }});
  for (const std::int64_t n : {32, 128}) {
    const std::string size = std::to_string(n) + "^3 complex";
    to.push_back({"FFT transpose, slabs, " + size, {}, [n](const Team& t) { return slabs(t, n); }});
    to.push_back({"FFT transpose, pencils, " + size, {}, [n](const Team& t) { return pencils(t, n); }});
  }
}

}  // namespace kplan::bench
