// Halos of a three-dimensional array of f64, n^3 of it on each rank, ranks in a row along x (faces in one piece), y or
// z (faces of single columns). Faces: the two along the split, periodic. Neighbours: all 26 directions, periodic in all
// dimensions, so that those across the split are of the rank's own; messages to a rank are fused, by kplan and by the
// alternatives, but for the one method that sends a message a direction, as most codes do.
#include <fmt/format.h>

#include "tools/bench/methods/exchange_methods.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

struct Halo {
  std::int64_t n, width;
  int split;  ///< dimension
  bool is_26;
};

/// Where a region begins and how far it reaches in one dimension, sent or received, for direction -1, 0 or 1.
struct Span {
  std::int64_t start, extent;
};
Span sent(const Halo& h, int direction) {
  if (direction == 0) return {h.width, h.n};
  return {direction > 0 ? h.n : h.width, h.width};
}
Span received(const Halo& h, int direction) {
  if (direction == 0) return {h.width, h.n};
  return {direction > 0 ? 0 : h.n + h.width, h.width};
}

Nest box_of(const Halo& h, const Array& array, const int (&direction)[3], Span (*side)(const Halo&, int)) {
  std::vector<std::int64_t> starts, extents;
  for (const int d : direction) {
    const Span span = side(h, d);
    starts.push_back(span.start);
    extents.push_back(span.extent);
  }
  return box(array, 0, starts, extents);
}

Exchange exchange_of(const Team& team, const Halo& h) {
  Exchange out{.team = team};
  const std::int64_t extent = h.n + 2 * h.width;
  out.arrays = {{Scalar::f64, {extent, extent, extent}}};
  for (int number = 0; number < 27; ++number) {
    const int direction[3] = {number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1};
    const int along = direction[h.split];
    const bool is_face = along != 0 && std::abs(direction[0]) + std::abs(direction[1]) + std::abs(direction[2]) == 1;
    if (number == 13 || (!h.is_26 && !is_face)) continue;
    const int to = (team.rank + along + team.size) % team.size, from = (team.rank - along + team.size) % team.size;
    const Nest leaving = box_of(h, out.arrays[0], direction, sent),
               entering = box_of(h, out.arrays[0], direction, received);
    if (to != team.rank) out.sends.push_back({to, number, {leaving}, {entering}});
    out.receives.push_back({from, number, {entering}, {leaving}});
  }
  return out;
}

/// The plan as a user would write it: one statement over all directions.
Plan plan_of(const Halo& h) {
  PlanBuilder builder("halo");
  builder.parameter("n", Scalar::i64).parameter("w", Scalar::i64);
  builder.buffer("u", Scalar::f64, {"n + 2*w", "n + 2*w", "n + 2*w"});
  if (!h.is_26) {
    const std::string all = "w : n+w", from = "f : f+w", to = "t : t+w";
    std::string place, value;
    for (int d = 0; d < 3; ++d) {
      place += (d > 0 ? ", " : "") + (d == h.split ? to : all);
      value += (d > 0 ? ", " : "") + (d == h.split ? from : all);
    }
    builder.communicate("faces", "u[" + place + "]@(r + d) % size <<= u[" + value +
                                     "]@r where r in world, d in {-1, 1}, f = d > 0 ? n : w, t = d > 0 ? 0 : n + w");
    return builder.build();
  }
  builder.communicate(
      "neighbours", fmt::format("u[tx:tx+cx, ty:ty+cy, tz:tz+cz]@(r + {}) % size <<= u[fx:fx+cx, fy:fy+cy, fz:fz+cz]@r "
                                "where r in world, dx, dy, dz in {{-1 ... 1}}, dx != 0 || dy != 0 || dz != 0, "
                                "cx = dx == 0 ? n : w, cy = dy == 0 ? n : w, cz = dz == 0 ? n : w, "
                                "fx = dx > 0 ? n : w, fy = dy > 0 ? n : w, fz = dz > 0 ? n : w, "
                                "tx = dx > 0 ? 0 : dx == 0 ? w : n + w, ty = dy > 0 ? 0 : dy == 0 ? w : n + w, "
                                "tz = dz > 0 ? 0 : dz == 0 ? w : n + w",
                                h.split == 0   ? "dx"
                                : h.split == 1 ? "dy"
                                               : "dz"));
  return builder.build();
}

Case make(const Team& team, const Halo& h) {
  Case out = case_of(exchange_of(team, h), {plan_of(h), {{"n", h.n}, {"w", h.width}}, {"u"}});
  if (h.is_26) out.methods.push_back(packed_persistent("hand, a message a direction", out.exchange));
  return out;
}

}  // namespace

void add_halos(std::vector<Workload>& to) {
  for (const std::int64_t n : {64, 256})
    for (const std::int64_t width : {1, 2})
      for (const bool is_26 : {false, true})
        for (int split = 0; split < 3; ++split)
          to.push_back({fmt::format("halo {}^3, width {}, {}, split {}", n, width, is_26 ? "26 neighbours" : "faces",
                                    "xyz"[split]),
                        {},
                        [=](const Team& team) {
                          return make(team, {n, width, split, is_26});
                        }});
}

}  // namespace kplan::bench
