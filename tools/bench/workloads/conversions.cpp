// What arrives is not just stored: f32 travels and f64 is written, from one piece or from every second element; layers
// of ghosts are added to the elements that they are copies of, in rows and in columns.
#include "tools/bench/workloads/faces.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

Case widen(const Team& team, std::int64_t n, std::int64_t stride) {
  Exchange e{.team = team};
  e.arrays = {{Scalar::f32, {n * stride}}, {Scalar::f64, {2 * n}}};
  const Nest leaving{0, 0, {{n, stride}}, {}, {}};
  for (const int direction : {1, -1}) {  // to the next rank's first half, to the second half of the one before
    const int to = (team.rank + direction + team.size) % team.size;
    const int from = (team.rank - direction + team.size) % team.size;
    const Nest entering = box(e.arrays[1], 1, {direction > 0 ? 0 : n}, {n});
    if (to != team.rank) e.sends.push_back({to, direction + 1, {leaving}, {entering}});
    e.receives.push_back({from, direction + 1, {entering}, {leaving}});
  }
  PlanBuilder builder("widen");
  builder.parameter("n", Scalar::i64).parameter("stride", Scalar::i64);
  builder.buffer("narrow", Scalar::f32, {"n * stride"}).buffer("wide", Scalar::f64, {"2 * n"});
  builder.communicate("widen",
                      "wide[d > 0 ? k : n + k]@(r + d) % size <<= narrow[k * stride]@r "
                      "where r in world, d in {-1, 1}, k in range(n)");
  return case_of(std::move(e), {builder.build(), {{"n", n}, {"stride", stride}}, {"narrow", "wide"}});
}

Case sum_faces(const Team& team, bool is_split_x) {
  const std::int64_t n = 512, w = 2;
  Array array{Scalar::f64, {n, n}};
  array.shape[is_split_x ? 1 : 0] += 2 * w;
  PlanBuilder builder("sum-faces");
  builder.parameter("n", Scalar::i64).parameter("w", Scalar::i64);
  builder.buffer("u", Scalar::f64, {array.shape[0], array.shape[1]});
  const auto layer = [&](const std::string& first) {
    return is_split_x ? "u[:, " + first + " : " + first + " + w]" : "u[" + first + " : " + first + " + w, :]";
  };
  // The ghosts at the end of one rank are the first layers of the next.
  builder.communicate("sum", layer("t") + "@(r + d) % size << sum << " + layer("f") +
                                 "@r where r in world, d in {-1, 1}, f = d > 0 ? n + w : 0, t = d > 0 ? w : n");
  return case_of(transposed_face_sum(team, {{array, is_split_x ? std::size_t{1} : std::size_t{0}, w, {}, {}}}),
                 {builder.build(), {{"n", n}, {"w", w}}, {"u"}});
}

}  // namespace

void add_conversions(std::vector<Workload>& to) {
  for (const std::int64_t n : {1000, 100000}) {
    const std::string text = "f32 to f64, " + std::to_string(n) + " each way";
    to.push_back({text, {}, [n](const Team& team) { return widen(team, n, 1); }});
    to.push_back({text + ", every second", {}, [n](const Team& team) { return widen(team, n, 2); }});
  }
  to.push_back({"sum of ghost rows on arrival", {}, [](const Team& team) { return sum_faces(team, false); }});
  to.push_back({"sum of ghost columns on arrival", {}, [](const Team& team) { return sum_faces(team, true); }});
}

}  // namespace kplan::bench
