// Halos of what models hold: several arrays of a weather code in one exchange (WRF's order: latitude, level,
// longitude), a four-dimensional array of species, and boxes of small blocks of constant size: a field's three layers
// of f32, the sites of a lattice of SU(3) vectors, the five unknowns of LU's planes, 23 numbers of a column (ddtbench:
// Schneider, Gerstenberger, Hoefler, Micro-applications for communication data access patterns, EuroMPI 2012).
#include <fmt/format.h>

#include "tools/bench/workloads/faces.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

/// `place@(r + d) % size <<= value@r` for each array: what the subscripts of the split dimension are is in `t` and `f`.
std::string statement(const std::vector<std::pair<std::string, std::string>>& places_and_values) {
  std::string out;
  for (const auto& [place, value] : places_and_values)
    out += fmt::format("{}{}@(r + d) % size <<= {}@r", out.empty() ? "" : ", ", place, value);
  return out + " where r in world, d in {-1, 1}, f = d > 0 ? n : w, t = d > 0 ? 0 : n + w";
}

/// Five fields with levels and two of the surface, halos of three layers.
Case weather(const Team& team, bool is_split_x) {
  const std::int64_t n = 64, levels = 40, w = 3, edge = n + 2 * w;
  const std::vector<std::string> deep{"u", "v", "pressure", "temperature", "vapour"}, flat{"rain", "ground"};
  const Array volume{Scalar::f32, {edge, levels, edge}}, surface{Scalar::f32, {edge, edge}};
  std::vector<FaceArray> arrays;
  PlanBuilder builder("weather");
  builder.parameter("n", Scalar::i64).parameter("levels", Scalar::i64).parameter("w", Scalar::i64);
  std::vector<std::pair<std::string, std::string>> moves;
  std::vector<std::string> names;
  for (const std::string& name : deep) {
    builder.buffer(name, Scalar::f32, {"n + 2*w", "levels", "n + 2*w"});
    if (is_split_x) arrays.push_back({volume, 2, w, {w, 0, 0}, {n, levels, 0}});
    else arrays.push_back({volume, 0, w, {0, 0, w}, {0, levels, n}});
    const auto subscripts = [&](const char* s) {
      return is_split_x ? fmt::format("{}[w:w+n, :, {}:{}+w]", name, s, s)
                        : fmt::format("{}[{}:{}+w, :, w:w+n]", name, s, s);
    };
    moves.emplace_back(subscripts("t"), subscripts("f"));
    names.push_back(name);
  }
  for (const std::string& name : flat) {
    builder.buffer(name, Scalar::f32, {"n + 2*w", "n + 2*w"});
    if (is_split_x) arrays.push_back({surface, 1, w, {w, 0}, {n, 0}});
    else arrays.push_back({surface, 0, w, {0, w}, {0, n}});
    const auto subscripts = [&](const char* s) {
      return is_split_x ? fmt::format("{}[w:w+n, {}:{}+w]", name, s, s) : fmt::format("{}[{}:{}+w, w:w+n]", name, s, s);
    };
    moves.emplace_back(subscripts("t"), subscripts("f"));
    names.push_back(name);
  }
  builder.communicate("fields", statement(moves));
  return case_of(face_exchange(team, arrays), {builder.build(), {{"n", n}, {"levels", levels}, {"w", w}}, names});
}

/// An array of any shape, whole layers along one dimension.
struct Layers {
  std::string name;
  Scalar type;
  std::vector<std::int64_t> shape;  ///< without ghosts
  std::size_t split;
  std::int64_t width;
  int block;  ///< elements that always go together
};

Case make(const Team& team, const Layers& l) {
  Array array{l.type, l.shape};
  array.shape[l.split] += 2 * l.width;
  std::vector<Expression> extents;
  std::string to, from;
  for (std::size_t d = 0; d < array.shape.size(); ++d) {
    extents.emplace_back(array.shape[d]);
    const std::string comma = d > 0 ? ", " : "";
    to += comma + (d == l.split ? "t : t+w" : ":");
    from += comma + (d == l.split ? "f : f+w" : ":");
  }
  PlanBuilder builder("layers");
  builder.parameter("n", Scalar::i64).parameter("w", Scalar::i64).buffer("u", l.type, extents);
  builder.communicate("faces", statement({{"u[" + to + "]", "u[" + from + "]"}}));
  return case_of(face_exchange(team, {{array, l.split, l.width, {}, {}}}),
                 {builder.build(), {{"n", l.shape[l.split]}, {"w", l.width}}, {"u"}}, l.block);
}

}  // namespace

void add_fields(std::vector<Workload>& to) {
  to.push_back({"weather, 7 arrays, split x (12 B blocks)", {}, [](const Team& t) { return weather(t, true); }});
  to.push_back({"weather, 7 arrays, split y", {}, [](const Team& t) { return weather(t, false); }});
  const std::vector<Layers> all{
      {"4-D species, split y", Scalar::f64, {8, 32, 64, 64}, 2, 2, 1},
      {"4-D species, split x", Scalar::f64, {8, 32, 64, 64}, 3, 2, 1},
      {"blocks of 12 B, weather field", Scalar::f32, {64, 40, 64}, 2, 3, 1},
      {"blocks of 24 B, lattice of SU(3) vectors in f32", Scalar::f32, {16, 16, 16, 16, 6}, 3, 1, 6},
      {"blocks of 40 B, LU plane", Scalar::f64, {64, 64, 64, 5}, 2, 1, 5},
      {"blocks of 48 B, lattice of SU(3) vectors in f64", Scalar::f64, {16, 16, 16, 16, 6}, 3, 1, 6},
      {"blocks of 92 B, columns of a weather field", Scalar::f32, {64, 40, 16, 23}, 2, 1, 23},
      {"lattice face along t, one piece", Scalar::f64, {16, 16, 16, 16, 6}, 0, 1, 6}};
  for (const Layers& l : all) to.push_back({l.name, {}, [l](const Team& team) { return make(team, l); }});
}

}  // namespace kplan::bench
