// A vector in another distribution: from blocks to blocks of 64 dealt out in turn, and from even blocks to blocks that
// grow with the rank, with the way back of a second vector in the same exchange.
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

Case block_to_cyclic(const Team& team, std::int64_t elements) {
  const std::int64_t width = 64, size = team.size;
  const std::int64_t rounds = elements / width / size / size;  // blocks that a rank sends to each
  const std::int64_t blocks = rounds * size;
  Exchange e{.team = team};
  e.arrays = {{Scalar::f64, {blocks, width}}, {Scalar::f64, {blocks, width}}};
  // As a rank's number of blocks is a multiple of `size`, its block b goes to rank b % size.
  const auto leaving = [&](int to) { return Nest{0, to * width, {{rounds, size * width}, {width, 1}}, {}, {}}; };
  const auto entering = [&](int from) { return box(e.arrays[1], 1, {from * rounds, 0}, {rounds, width}); };
  for (int peer = 0; peer < team.size; ++peer) {
    if (peer != team.rank) e.sends.push_back({peer, 0, {leaving(peer)}, {entering(team.rank)}});
    e.receives.push_back({peer, 0, {entering(peer)}, {leaving(team.rank)}});
  }
  PlanBuilder builder("block-to-cyclic");
  builder.parameter("blocks", Scalar::i64).parameter("width", Scalar::i64);
  builder.buffer("A", Scalar::f64, {"blocks", "width"}).buffer("B", Scalar::f64, {"blocks", "width"});
  builder.communicate("deal",
                      "B[g / size, :]@g % size <<= A[b, :]@p "
                      "where p in world, b in range(blocks), g = p * blocks + b");
  return case_of(std::move(e), {builder.build(), {{"blocks", blocks}, {"width", width}}, {"A", "B"}});
}

/// The overlap of two ranges of a vector's elements.
std::pair<std::int64_t, std::int64_t> overlap(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  const std::int64_t first = std::max(a, c), end = std::min(b, d);
  return {first, std::max(first, end)};
}

/// A and D by even blocks of `m`, B and C by blocks that begin at `m * size * r * (r + 1) / (size * (size + 1))`.
Case block_to_block(const Team& team, std::int64_t m) {
  const std::int64_t size = team.size;
  const auto even = [&](std::int64_t r) { return r * m; };
  const auto uneven = [&](std::int64_t r) { return m * r * (r + 1) / (size + 1); };
  const auto most = uneven(size) - uneven(size - 1) + 1;
  Exchange e{.team = team};
  e.arrays = {{Scalar::f64, {m}}, {Scalar::f64, {most}}, {Scalar::f64, {most}}, {Scalar::f64, {m}}};
  const auto add = [&](int peer, int tag, int from_array, int to_array, const auto& from, const auto& to) {
    const auto piece = [&](int array, std::int64_t begin, std::int64_t first, std::int64_t end) {
      return box(e.arrays[static_cast<std::size_t>(array)], array, {first - begin}, {end - first});
    };
    const auto link = [&](int sender, int receiver, bool is_send) {
      const auto [first, end] = overlap(from(sender), from(sender + 1), to(receiver), to(receiver + 1));
      if (first == end) return;
      const Nest there = piece(from_array, from(sender), first, end), here = piece(to_array, to(receiver), first, end);
      if (is_send) e.sends.push_back({peer, tag, {there}, {here}});
      else e.receives.push_back({peer, tag, {here}, {there}});
    };
    if (peer != team.rank) link(team.rank, peer, true);
    link(peer, team.rank, false);
  };
  for (int peer = 0; peer < team.size; ++peer) {
    add(peer, 0, 0, 1, even, uneven);
    add(peer, 1, 2, 3, uneven, even);
  }
  PlanBuilder builder("block-to-block");
  builder.parameter("m", Scalar::i64).parameter("most", Scalar::i64);
  builder.buffer("A", Scalar::f64, {"m"}).buffer("B", Scalar::f64, {"most"});
  builder.buffer("C", Scalar::f64, {"most"}).buffer("D", Scalar::f64, {"m"});
  const std::string where =
      " where p in world, q in world, e = p * m, ee = (p + 1) * m, u = m * q * (q + 1) / (size + 1), "
      "uu = m * (q + 1) * (q + 2) / (size + 1), lo = max(e, u), hi = min(ee, uu), lo < hi";
  builder.communicate("there", "B[lo - u : hi - u]@q <<= A[lo - e : hi - e]@p" + where);
  builder.communicate("back", "D[lo - e : hi - e]@p <<= C[lo - u : hi - u]@q" + where);
  return case_of(std::move(e), {builder.build(), {{"m", m}, {"most", most}}, {"A", "B", "C", "D"}});
}

}  // namespace

void add_redistributions(std::vector<Workload>& to) {
  to.push_back({"redistribution, blocks to blocks of 64 in turn", {}, [](const Team& team) {
                  return block_to_cyclic(team, std::int64_t{1} << 20);
                }});
  to.push_back({"redistribution, even blocks to uneven and back", {}, [](const Team& team) {
                  return block_to_block(team, 200000);
                }});
}

}  // namespace kplan::bench
