// Particles as an array of structures of 64 bytes: the positions of ghost particles are fetched from their owners,
// field by field out of the records, or the whole records.
#include <algorithm>
#include <numeric>
#include <random>

#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

constexpr int numbers = 8;  ///< f64 and i64 in a record: position, velocity, mass, id

/// Which of `owner`'s particles `rank` has ghosts of, ascending: those near the boundary.
std::vector<std::int32_t> near(int rank, int owner, std::int64_t count, std::int64_t n_owned) {
  std::mt19937 random(static_cast<unsigned>(rank * 7919 + owner));
  std::vector<std::int32_t> out(static_cast<std::size_t>(n_owned));
  std::iota(out.begin(), out.end(), 0);
  std::shuffle(out.begin(), out.end(), random);
  out.resize(static_cast<std::size_t>(count));
  std::ranges::sort(out);
  return out;
}

Case particles(const Team& team, std::int64_t ghosts, bool is_whole) {
  const std::int64_t count = ghosts / (team.size - 1), n_owned = 5 * ghosts, n_ghost = count * (team.size - 1);
  const int taken = is_whole ? numbers : 3;
  const auto place = [&](int rank, int owner) {
    return Nest{
        0, numbers * (n_owned + count * (owner < rank ? owner : owner - 1)), {{count, numbers}, {taken, 1}}, {}, {}};
  };
  Exchange e{.team = team};
  e.arrays = {{Scalar::f64, {n_owned + n_ghost, numbers}}};
  std::vector<std::int32_t> owners;
  std::vector<std::int64_t> indices;
  for (int peer = 0; peer < team.size; ++peer) {
    if (peer == team.rank) continue;
    const IndexList here{0, near(peer, team.rank, count, n_owned), numbers, 0, taken};
    const IndexList there{0, near(team.rank, peer, count, n_owned), numbers, 0, taken};
    e.sends.push_back({peer, 0, {here}, {place(peer, team.rank)}});
    e.receives.push_back({peer, 0, {place(team.rank, peer)}, {there}});
    owners.insert(owners.end(), static_cast<std::size_t>(count), peer);
    indices.insert(indices.end(), there.indices.begin(), there.indices.end());
  }
  PlanBuilder builder("particles");
  builder.type("particle", record_of({{"x", Scalar::f64},
                                      {"y", Scalar::f64},
                                      {"z", Scalar::f64},
                                      {"vx", Scalar::f64},
                                      {"vy", Scalar::f64},
                                      {"vz", Scalar::f64},
                                      {"mass", Scalar::f64},
                                      {"id", Scalar::i64}}));
  builder.parameter("n_owned", Scalar::i64).parameter("n_ghost", Scalar::i64);
  builder.buffer("p", "particle", {"n_owned + n_ghost"});
  builder.index_buffer("owner", Scalar::i32, {"n_ghost"}, Scope::private_, Time::fixed);
  builder.index_buffer("index", Scalar::i64, {"n_ghost"}, Scope::private_, Time::fixed);
  std::string text;
  for (const std::string field : {".x", ".y", ".z"})
    text += (text.empty() ? "" : ", ") + ("p[n_owned + k]" + field + "@rank <<= p[i]" + field + "@o");
  if (is_whole) text = "p[n_owned + k]@rank <<= p[i]@o";
  builder.communicate("ghosts", text + " where k in range(n_ghost), i = index[k], o = owner[k]").pull();
  const Values values{{"n_owned", n_owned}, {"n_ghost", n_ghost}, {"owner", owners}, {"index", indices}};
  return case_of(std::move(e), {builder.build(), values, {"p"}}, is_whole ? numbers : 1);
}

}  // namespace

void add_particles(std::vector<Workload>& to) {
  for (const std::int64_t ghosts : {1000, 20000}) {
    const std::string text = std::to_string(ghosts) + " particles, ";
    to.push_back({text + "three fields", {}, [ghosts](const Team& team) { return particles(team, ghosts, false); }});
    to.push_back({text + "whole records", {}, [ghosts](const Team& team) { return particles(team, ghosts, true); }});
  }
}

}  // namespace kplan::bench
