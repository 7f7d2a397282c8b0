// Ghost gather and its transposed sum, as sparse solvers do them: every rank has n_owned values and n_ghost copies of
// others', sorted by owner; which of the owner's they are is in a list that is sorted, in clusters, or shuffled. And
// three independent gathers of 100 entries in one plan.
#include <algorithm>
#include <numeric>
#include <random>

#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

enum class Order : std::uint8_t { sorted, clustered, shuffled };

/// Which of `owner`'s n_owned values `rank` has ghosts of: the same list on whichever rank asks.
std::vector<std::int32_t> wanted(Order order, int rank, int owner, std::int64_t count, std::int64_t n_owned,
                                 int number) {
  std::mt19937 random(static_cast<unsigned>(rank * 1009 + owner * 31 + number));
  std::vector<std::int32_t> all(static_cast<std::size_t>(n_owned));
  std::iota(all.begin(), all.end(), 0);
  if (order == Order::clustered) {  // runs of 32 in any order
    std::vector<std::int32_t> out, runs(static_cast<std::size_t>(n_owned / 32));
    std::iota(runs.begin(), runs.end(), 0);
    std::shuffle(runs.begin(), runs.end(), random);
    for (const std::int32_t run : runs)
      for (std::int32_t k = 0; k < 32 && static_cast<std::int64_t>(out.size()) < count; ++k)
        out.push_back(32 * run + k);
    return out;
  }
  std::shuffle(all.begin(), all.end(), random);
  all.resize(static_cast<std::size_t>(count));
  if (order == Order::sorted) std::ranges::sort(all);
  return all;
}

/// One list of ghosts, as each rank sees it.
struct Ghosts {
  Order order;
  std::int64_t count;  ///< of a rank's ghosts from each other rank
  std::int64_t n_owned;
  int number = 0;

  std::int64_t per_rank(int size) const { return count * (size - 1); }
  /// Where `rank` keeps its ghosts of `owner`.
  std::int64_t place(int rank, int owner) const { return n_owned + count * (owner < rank ? owner : owner - 1); }
  IndexList list(int rank, int owner) const {
    return {number, wanted(order, rank, owner, count, n_owned, number), 1, 0, 1};
  }
  Nest ghosts(int rank, int owner) const { return {number, place(rank, owner), {{count, 1}}, {}, {}}; }
};

void add_gather(Exchange& e, const Ghosts& g) {
  const int me = e.team.rank;
  e.arrays.push_back({Scalar::f64, {g.n_owned + g.per_rank(e.team.size)}});
  for (int peer = 0; peer < e.team.size; ++peer) {
    if (peer == me) continue;
    e.sends.push_back({peer, g.number, {g.list(peer, me)}, {g.ghosts(peer, me)}});
    e.receives.push_back({peer, g.number, {g.ghosts(me, peer)}, {g.list(me, peer)}});
  }
}

/// The owner and the index of every ghost, as the plan takes them.
std::pair<std::vector<std::int32_t>, std::vector<std::int64_t>> owners_and_indices(const Team& team, const Ghosts& g) {
  std::pair<std::vector<std::int32_t>, std::vector<std::int64_t>> out;
  for (int owner = 0; owner < team.size; ++owner) {
    if (owner == team.rank) continue;
    for (const std::int32_t index : g.list(team.rank, owner).indices) {
      out.first.push_back(owner);
      out.second.push_back(index);
    }
  }
  return out;
}

/// Declares x0, owner0 and index0 and adds their values.
void declare(PlanBuilder& builder, Values& values, const Team& team, const Ghosts& g) {
  const std::string n = std::to_string(g.number);
  builder.buffer("x" + n, Scalar::f64, {"n_owned + n_ghost"});
  builder.index_buffer("owner" + n, Scalar::i32, {"n_ghost"}, Scope::private_, Time::fixed);
  builder.index_buffer("index" + n, Scalar::i64, {"n_ghost"}, Scope::private_, Time::fixed);
  const auto [owners, indices] = owners_and_indices(team, g);
  values.emplace_back("owner" + n, owners);
  values.emplace_back("index" + n, indices);
}

std::string where(int number) {
  const std::string n = std::to_string(number);
  return " where k in range(n_ghost), i = index" + n + "[k], o = owner" + n + "[k]";
}

Case gather(const Team& team, const std::vector<Ghosts>& lists) {
  Exchange e{.team = team};
  PlanBuilder builder("ghost-gather");
  builder.parameter("n_owned", Scalar::i64).parameter("n_ghost", Scalar::i64);
  Values values{{"n_owned", lists[0].n_owned}, {"n_ghost", lists[0].per_rank(team.size)}};
  std::vector<std::string> names;
  for (const Ghosts& g : lists) {
    add_gather(e, g);
    declare(builder, values, team, g);
    const std::string x = names.emplace_back("x" + std::to_string(g.number));
    builder.communicate("gather" + x, x + "[n_owned + k]@rank <<= " + x + "[i]@o" + where(g.number)).pull();
  }
  return case_of(std::move(e), {builder.build(), values, names});
}

Case sum(const Team& team, const Ghosts& g) {
  Exchange e{.team = team};
  add_gather(e, g);
  std::swap(e.sends, e.receives);
  e.combine = Combine::sum;
  PlanBuilder builder("ghost-sum");
  builder.parameter("n_owned", Scalar::i64).parameter("n_ghost", Scalar::i64);
  Values values{{"n_owned", g.n_owned}, {"n_ghost", g.per_rank(team.size)}};
  declare(builder, values, team, g);
  builder.communicate("sum", "x0[i]@o << sum << x0[n_owned + k]@rank" + where(0));
  return case_of(std::move(e), {builder.build(), values, {"x0"}});
}

Ghosts ghosts_of(const Team& team, Order order, std::int64_t entries) {
  return {order, entries / (team.size - 1), (4 * entries + 31) / 32 * 32};
}

}  // namespace

Case ghost_gather(const Team& team, std::int64_t entries, bool is_sorted) {
  return gather(team, {ghosts_of(team, is_sorted ? Order::sorted : Order::shuffled, entries)});
}

void add_ghosts(std::vector<Workload>& to) {
  const std::pair<std::string, Order> orders[] = {
      {"sorted", Order::sorted}, {"clustered", Order::clustered}, {"shuffled", Order::shuffled}};
  for (const std::int64_t entries : {100, 10000, 1000000})
    for (const auto& [name, order] : orders) {
      const std::string text = std::to_string(entries) + " entries, " + name;
      const auto lists = [=](const Team& team) { return ghosts_of(team, order, entries); };
      to.push_back({"ghost gather, " + text, {}, [=](const Team& team) { return gather(team, {lists(team)}); }});
      to.push_back({"ghost sum, " + text, {}, [=](const Team& team) { return sum(team, lists(team)); }});
    }
  to.push_back({"three statements of 100 entries", {}, [](const Team& team) {
                  const std::int64_t count = 100 / (team.size - 1);
                  return gather(team, {{Order::shuffled, count, 416, 0},
                                       {Order::shuffled, count, 416, 1},
                                       {Order::shuffled, count, 416, 2}});
                }});
}

}  // namespace kplan::bench
