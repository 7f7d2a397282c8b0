// Collective operations beside MPI's own: a broadcast from the first rank, and of what came from the last, reductions
// to both, an all-reduce, an allgatherv of parts of different sizes. 8 B, 4 KiB, 1 MiB.
#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/methods/hand_collectives.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

/// x is what a rank gives, `first` and `last` are for results.
struct Memory {
  AlignedMemory x, first, last;
};

double given(int rank, std::size_t k, unsigned seed) {
  return static_cast<double>((static_cast<std::size_t>(rank) * 37 + k * 11 + seed * 5) % 1000);
}

std::string compared(const char* what, std::span<double> values, const std::function<double(std::size_t)>& expected) {
  for (std::size_t k = 0; k < values.size(); ++k)
    if (values[k] != expected(k)) return fmt::format("{}[{}] is {}, not {}", what, k, values[k], expected(k));
  return "";
}

std::function<double(std::size_t)> total(const Team& team, unsigned seed) {
  return [size = team.size, seed](std::size_t k) {
    double out = 0;
    for (int rank = 0; rank < size; ++rank) out += given(rank, k, seed);
    return out;
  };
}

PlanBuilder with_buffers(const char* name) {
  PlanBuilder builder(name);
  builder.parameter("n", Scalar::i64);
  for (const char* buffer : {"x", "first", "last"}) builder.buffer(buffer, Scalar::f64, {"n"});
  return builder;
}

Method planned(const Team& team, const PlanBuilder& builder, const std::shared_ptr<Memory>& m, std::size_t n) {
  return kplan_method(team, builder.build(), {{"n", n}},
                      {{"x", m->x.bytes()}, {"first", m->first.bytes()}, {"last", m->last.bytes()}});
}

struct Made {
  std::shared_ptr<Memory> memory;
  Case out;
};

Made begun(const Team& team, std::size_t n) {
  Made made;
  made.memory = std::make_shared<Memory>(Memory{AlignedMemory(8 * n), AlignedMemory(8 * n), AlignedMemory(8 * n)});
  made.out.bytes = 8 * n;
  made.out.memory = made.memory;
  made.out.peers = made.out.messages = team.size - 1;
  made.out.rewrite = [m = made.memory, rank = team.rank](unsigned seed) {
    const auto x = m->x.as<double>();
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = given(rank, k, seed);
  };
  made.out.whole.fill = [m = made.memory, rewrite = made.out.rewrite](unsigned seed) {
    rewrite(seed);
    for (const AlignedMemory* result : {&m->first, &m->last}) std::ranges::fill(result->as<double>(), -1.0);
  };
  return made;
}

Case broadcast(const Team& team, std::size_t n) {
  auto [m, out] = begun(team, n);
  const bool is_last = team.rank == team.size - 1;
  out.whole.difference = [m = m, is_last](unsigned seed) {
    const auto of_first = [seed](std::size_t k) { return given(0, k, seed); };
    const std::string mistake = compared("x", m->x.as<double>(), of_first);
    if (!mistake.empty() || is_last) return mistake;
    return compared("last", m->last.as<double>(), of_first);
  };
  PlanBuilder builder = with_buffers("broadcast");
  builder.communicate("there", "x[:]@r <<= x[:]@0 where r in world, r != 0");
  builder.communicate("back", "last[:]@r <<= x[:]@size - 1 where r in world, r != size - 1");
  out.methods.push_back(planned(team, builder, m, n));
  out.methods.push_back({"MPI_Bcast", [=, m = m]() -> std::function<void()> {
                           return [=] {
                             MPI_Bcast(m->x.data(), static_cast<int>(n), MPI_DOUBLE, 0, team.comm);
                             MPI_Bcast(is_last ? m->x.data() : m->last.data(), static_cast<int>(n), MPI_DOUBLE,
                                       team.size - 1, team.comm);
                           };
                         }});
  out.methods.push_back(hand_broadcasts(team, m->x.as<double>(), m->last.as<double>()));
  return std::move(out);
}

Case reduce(const Team& team, std::size_t n) {
  auto [m, out] = begun(team, n);
  out.whole.difference = [m = m, team](unsigned seed) {
    const auto sum = total(team, seed);
    const auto nothing = [](std::size_t) { return -1.0; };
    const bool is_first = team.rank == 0, is_last = team.rank == team.size - 1;
    std::string mistake =
        is_first ? compared("first", m->first.as<double>(), sum) : compared("first", m->first.as<double>(), nothing);
    if (!mistake.empty()) return mistake;
    return is_last ? compared("last", m->last.as<double>(), sum) : compared("last", m->last.as<double>(), nothing);
  };
  PlanBuilder builder = with_buffers("reduce");
  builder.communicate("to-first", "first[:]@0 << sum << x[:]@r where r in world").fresh();
  builder.communicate("to-last", "last[:]@size - 1 << sum << x[:]@r where r in world").fresh();
  out.methods.push_back(planned(team, builder, m, n));
  out.methods.push_back({"MPI_Reduce", [=, m = m]() -> std::function<void()> {
                           return [=] {
                             const auto count = static_cast<int>(n);
                             MPI_Reduce(m->x.data(), m->first.data(), count, MPI_DOUBLE, MPI_SUM, 0, team.comm);
                             MPI_Reduce(m->x.data(), m->last.data(), count, MPI_DOUBLE, MPI_SUM, team.size - 1,
                                        team.comm);
                           };
                         }});
  out.methods.push_back(
      {"MPI_Ireduce, both at once", [=, m = m]() -> std::function<void()> {
         return [=] {
           const auto count = static_cast<int>(n);
           MPI_Request requests[2];
           MPI_Ireduce(m->x.data(), m->first.data(), count, MPI_DOUBLE, MPI_SUM, 0, team.comm, &requests[0]);
           MPI_Ireduce(m->x.data(), m->last.data(), count, MPI_DOUBLE, MPI_SUM, team.size - 1, team.comm, &requests[1]);
           MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
         };
       }});
  out.methods.push_back(
      hand_sums(team, m->x.as<double>(), {{0, m->first.as<double>()}, {team.size - 1, m->last.as<double>()}}));
  return std::move(out);
}

Case all_reduce(const Team& team, std::size_t n) {
  auto [m, out] = begun(team, n);
  out.whole.difference = [m = m, team](unsigned seed) {
    return compared("first", m->first.as<double>(), total(team, seed));
  };
  PlanBuilder builder = with_buffers("all-reduce");
  builder.communicate("sum", "first[:]@r << sum << x[:]@s where s in world, r in world").fresh();
  out.methods.push_back(planned(team, builder, m, n));
  out.methods.push_back({"MPI_Allreduce", [=, m = m]() -> std::function<void()> {
                           return [=] {
                             MPI_Allreduce(m->x.data(), m->first.data(), static_cast<int>(n), MPI_DOUBLE, MPI_SUM,
                                           team.comm);
                           };
                         }});
  std::vector<Root> everyone;
  for (int rank = 0; rank < team.size; ++rank) everyone.push_back({rank, m->first.as<double>()});
  out.methods.push_back(hand_sums(team, m->x.as<double>(), everyone));
  return std::move(out);
}

/// Rank s gives n * (1 + s % 2) elements.
Case all_gather(const Team& team, std::int64_t n) {
  std::vector<int> counts, displacements;
  std::int64_t all = 0;
  for (int rank = 0; rank < team.size; ++rank) {
    counts.push_back(static_cast<int>(n) * (1 + rank % 2));
    displacements.push_back(static_cast<int>(all));
    all += counts.back();
  }
  const auto count_of = [&](int rank) { return counts[static_cast<std::size_t>(rank)]; };
  Exchange e{.team = team};
  e.arrays = {{Scalar::f64, {2 * n}}, {Scalar::f64, {all}}};
  const auto given_part = [&](int rank) { return box(e.arrays[0], 0, {0}, {count_of(rank)}); };
  const auto place = [&](int rank) {
    return box(e.arrays[1], 1, {displacements[static_cast<std::size_t>(rank)]}, {count_of(rank)});
  };
  for (int peer = 0; peer < team.size; ++peer) {
    if (peer != team.rank) e.sends.push_back({peer, 0, {given_part(team.rank)}, {place(team.rank)}});
    e.receives.push_back({peer, 0, {place(peer)}, {given_part(peer)}});
  }
  PlanBuilder builder("allgatherv");
  builder.parameter("most", Scalar::i64).parameter("all", Scalar::i64);
  builder.index_buffer("counts", Scalar::i32, {"size"}, Scope::uniform, Time::fixed);
  builder.index_buffer("displs", Scalar::i32, {"size"}, Scope::uniform, Time::fixed);
  builder.buffer("sb", Scalar::f64, {"most"}).buffer("rb", Scalar::f64, {"all"});
  builder.communicate("allgatherv",
                      "rb[displs[s] : displs[s]+counts[s]]@r <<= sb[0:counts[s]]@s where s in world, r in world");
  const Values values{{"most", 2 * n}, {"all", all}, {"counts", counts}, {"displs", displacements}};
  Case out = case_of(std::move(e), {builder.build(), values, {"sb", "rb"}});
  const auto native = [=, arrays = out.exchange->arrays] {
    MPI_Allgatherv(arrays[0].data, counts[static_cast<std::size_t>(team.rank)], MPI_DOUBLE, arrays[1].data,
                   counts.data(), displacements.data(), MPI_DOUBLE, team.comm);
  };
  out.methods.insert(out.methods.begin() + 1,
                     {"MPI_Allgatherv", [native]() -> std::function<void()> { return native; }});
  return out;
}

}  // namespace

void add_collectives(std::vector<Workload>& to) {
  for (const auto& [size, n] :
       {std::pair("8 B", std::size_t{1}), {"4 KiB", std::size_t{512}}, {"1 MiB", std::size_t{1} << 17}}) {
    const std::string text = size;
    to.push_back({"broadcast there and back, " + text, {}, [n](const Team& t) { return broadcast(t, n); }});
    to.push_back({"reduce to first and last, " + text, {}, [n](const Team& t) { return reduce(t, n); }});
    to.push_back({"all-reduce, " + text, {}, [n](const Team& t) { return all_reduce(t, n); }});
    to.push_back(
        {"allgatherv, " + text, {}, [n](const Team& t) { return all_gather(t, static_cast<std::int64_t>(n)); }});
  }
}

}  // namespace kplan::bench
