// How it works: a direction's message holds the layers of all arrays, in their order.
#include "tools/bench/workloads/faces.hpp"

namespace kplan::bench {
namespace {

Nest layers(const FaceArray& f, int number, std::int64_t first) {
  std::vector<std::int64_t> starts = f.starts, counts = f.counts;
  if (starts.empty()) starts.assign(f.array.shape.size(), 0);
  if (counts.empty()) counts = f.array.shape;
  starts[f.split] = first;
  counts[f.split] = f.width;
  return box(f.array, number, starts, counts);
}

}  // namespace

Exchange face_exchange(const Team& team, const std::vector<FaceArray>& arrays) {
  Exchange out{.team = team};
  for (const FaceArray& f : arrays) out.arrays.push_back(f.array);
  for (const int direction : {-1, 1}) {
    Region leaving, entering;
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      const FaceArray& f = arrays[k];
      const std::int64_t extent = f.array.shape[f.split];
      const int number = static_cast<int>(k);
      leaving.push_back(layers(f, number, direction > 0 ? extent - 2 * f.width : f.width));
      entering.push_back(layers(f, number, direction > 0 ? 0 : extent - f.width));
    }
    const int to = (team.rank + direction + team.size) % team.size;
    const int from = (team.rank - direction + team.size) % team.size;
    if (to != team.rank) out.sends.push_back({to, direction + 1, leaving, entering});
    out.receives.push_back({from, direction + 1, entering, leaving});
  }
  return out;
}

Exchange transposed_face_sum(const Team& team, const std::vector<FaceArray>& arrays) {
  Exchange out = face_exchange(team, arrays);
  std::vector<Link> sends;
  for (const Link& l : out.receives)
    if (l.peer != team.rank) sends.push_back(l);
  std::vector<Link> receives = out.sends;
  for (const Link& l : out.receives)
    if (l.peer == team.rank) receives.push_back({l.peer, l.tag, l.theirs, l.mine});
  out.sends = std::move(sends);
  out.receives = std::move(receives);
  out.combine = Combine::sum;
  return out;
}

}  // namespace kplan::bench
