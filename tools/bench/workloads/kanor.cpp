// The even exchange of the Kanor paper (section 2): even ranks i get from every rank j its element i. As it stands,
// with one number for each pair, and with blocks; and with the odd ranks' turn in the same plan, so that bytes go both
// ways at once between any two ranks.
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

/// Rank r has the rows 0 ... size - 1 of `block` elements in A and B.
Exchange exchange_of(const Team& team, std::int64_t block, bool is_both) {
  Exchange out{.team = team};
  const Array rows{Scalar::f64, {team.size, block}};
  out.arrays = {rows, rows};
  for (int peer = 0; peer < team.size; ++peer) {
    if ((peer % 2 == 0 || is_both) && peer != team.rank)
      out.sends.push_back({peer, 0, {box(rows, 1, {peer, 0}, {1, block})}, {box(rows, 0, {team.rank, 0}, {1, block})}});
    if (team.rank % 2 == 0 || is_both)
      out.receives.push_back(
          {peer, 0, {box(rows, 0, {peer, 0}, {1, block})}, {box(rows, 1, {team.rank, 0}, {1, block})}});
  }
  return out;
}

Case even_exchange(const Team& team, std::int64_t block, bool is_both) {
  PlanBuilder builder("even-exchange");
  builder.parameter("n", Scalar::i64);
  builder.buffer("A", Scalar::f64, {"size", "n"}).buffer("B", Scalar::f64, {"size", "n"});
  builder.communicate("even", "A[j, :]@i <<= B[i, :]@j where i in world, j in world, i % 2 == 0");
  if (is_both) builder.communicate("odd", "A[j, :]@i <<= B[i, :]@j where i in world, j in world, i % 2 == 1");
  return case_of(exchange_of(team, block, is_both), {builder.build(), {{"n", block}}, {"A", "B"}});
}

}  // namespace

void add_kanor(std::vector<Workload>& to) {
  for (const auto& [size, block] : {std::pair("8 B", 1), std::pair("4 KiB", 512)}) {
    const std::string name = std::string("even exchange, ") + size;
    to.push_back({name, {}, [block](const Team& team) { return even_exchange(team, block, false); }});
    to.push_back({name + ", odd too", {}, [block](const Team& team) { return even_exchange(team, block, true); }});
  }
}

}  // namespace kplan::bench
