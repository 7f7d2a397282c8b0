// Sweeps, as NAS LU and wavefront codes do them: every run exchanges the edge of another plane. The number of the plane
// varies; kplan remembers what it has worked out for each, as a program by hand works out an address.
#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

constexpr std::int64_t variables = 5, planes = 16;

/// A rank's part of a field u[plane, j, i, variable]; what comes for the last i of the neighbour is to lie in
/// ghost[plane, j, variable].
struct Sweep {
  Team team;
  std::int64_t n;
  AlignedMemory u, ghost;
  std::size_t turn = 0;

  std::int64_t next() { return static_cast<std::int64_t>(turn++ % planes); }
  std::int64_t edge_elements() const { return n * variables; }
  double* edge(std::int64_t plane) const { return u.as<double>().data() + ((plane * n) * n + n - 1) * variables; }
  double* ghosts(std::int64_t plane) const { return ghost.as<double>().data() + plane * n * variables; }
  void pack(std::int64_t plane, std::span<double> message) const {
    const double* from = edge(plane);
    double* to = message.data();
    for (std::int64_t j = 0; j < n; ++j, from += n * variables)
      for (std::int64_t v = 0; v < variables; ++v) *to++ = from[v];
  }
  int to() const { return (team.rank + 1) % team.size; }
  int from() const { return (team.rank + team.size - 1) % team.size; }
};

double value(int rank, std::size_t k, unsigned seed) {
  return static_cast<double>((static_cast<std::size_t>(rank) * 131 + k * 7 + seed * 17) % 8191);
}

std::string difference(const Sweep& sweep, unsigned seed) {
  const auto plane = static_cast<std::int64_t>(seed % planes);
  for (std::int64_t p = 0; p < planes; ++p)
    for (std::int64_t j = 0; j < sweep.n; ++j)
      for (std::int64_t v = 0; v < variables; ++v) {
        const auto k = static_cast<std::size_t>(((p * sweep.n + j) * sweep.n + sweep.n - 1) * variables + v);
        const double expected = p == plane ? value(sweep.from(), k, seed) : -1,
                     got = sweep.ghosts(p)[j * variables + v];
        if (got != expected)
          return fmt::format("rank {}: plane {}, row {}, variable {}: {} instead of {}", sweep.team.rank, p, j, v, got,
                             expected);
      }
  return "";
}

Method planned(const std::shared_ptr<Sweep>& sweep) {
  PlanBuilder builder("sweep");
  builder.parameter("n", Scalar::i64).parameter("k", Scalar::i64, Scope::uniform, Time::varying);
  builder.buffer("u", Scalar::f64, {planes, "n", "n", variables})
      .buffer("ghost", Scalar::f64, {planes, "n", variables});
  builder.communicate("edge", "ghost[k, :, :]@(r + 1) % size <<= u[k, :, n - 1, :]@r where r in world");
  return kplan_method(sweep->team, builder.build(), {{"n", sweep->n}, {"k", 0}},
                      {{"u", sweep->u.bytes()}, {"ghost", sweep->ghost.bytes()}},
                      [sweep](Executable& executable) { executable.set("k", sweep->next()); });
}

/// Packs the edge; receives where the plane's ghosts are.
class ByHand {
 public:
  explicit ByHand(std::shared_ptr<Sweep> sweep)
      : sweep_(std::move(sweep)), message_(static_cast<std::size_t>(sweep_->edge_elements())) {}
  void run() {
    const Sweep& s = *sweep_;
    const std::int64_t plane = sweep_->next();
    const int count = static_cast<int>(message_.size());
    MPI_Request requests[2];
    MPI_Irecv(s.ghosts(plane), count, MPI_DOUBLE, s.from(), 103, s.team.comm, &requests[0]);
    s.pack(plane, message_);
    MPI_Isend(message_.data(), count, MPI_DOUBLE, s.to(), 103, s.team.comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }

 private:
  std::shared_ptr<Sweep> sweep_;
  std::vector<double> message_;
};

/// The requests of all planes: a pair for each, received where the plane's ghosts are.
class Requests {
 public:
  Requests(const Sweep& s, int tag, const std::function<void(std::int64_t plane, MPI_Request*)>& begin_send) {
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      MPI_Request* pair = of(plane);
      MPI_Recv_init(s.ghosts(plane), static_cast<int>(s.edge_elements()), MPI_DOUBLE, s.from(), tag, s.team.comm,
                    &pair[0]);
      begin_send(plane, &pair[1]);
    }
  }
  ~Requests() {
    for (MPI_Request& request : all_) MPI_Request_free(&request);
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  /// Two of them: what receives, what sends.
  MPI_Request* of(std::int64_t plane) { return &all_[static_cast<std::size_t>(2 * plane)]; }

 private:
  MPI_Request all_[2 * planes];
};

/// The same with persistent requests.
class ByHandPersistent {
 public:
  explicit ByHandPersistent(std::shared_ptr<Sweep> sweep)
      : sweep_(std::move(sweep)),
        message_(static_cast<std::size_t>(sweep_->edge_elements())),
        requests_(*sweep_, 104, [&](std::int64_t, MPI_Request* request) {
          MPI_Send_init(message_.data(), static_cast<int>(message_.size()), MPI_DOUBLE, sweep_->to(), 104,
                        sweep_->team.comm, request);
        }) {}
  void run() {
    const std::int64_t plane = sweep_->next();
    MPI_Request* requests = requests_.of(plane);
    MPI_Start(&requests[0]);
    sweep_->pack(plane, message_);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }

 private:
  std::shared_ptr<Sweep> sweep_;
  std::vector<double> message_;
  Requests requests_;
};

/// A vector type for the edge, sent from where it lies.
OwnedType edge_type(const Sweep& s) {
  MPI_Datatype out = MPI_DATATYPE_NULL;
  MPI_Type_vector(static_cast<int>(s.n), variables, static_cast<int>(s.n * variables), MPI_DOUBLE, &out);
  MPI_Type_commit(&out);
  return {out, MPI_Type_free};
}

class ByDatatype {
 public:
  explicit ByDatatype(std::shared_ptr<Sweep> sweep) : sweep_(std::move(sweep)), edge_(edge_type(*sweep_)) {}
  void run() {
    const Sweep& s = *sweep_;
    const std::int64_t plane = sweep_->next();
    MPI_Request requests[2];
    MPI_Irecv(s.ghosts(plane), static_cast<int>(s.edge_elements()), MPI_DOUBLE, s.from(), 105, s.team.comm,
              &requests[0]);
    MPI_Isend(s.edge(plane), 1, edge_.get(), s.to(), 105, s.team.comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }

 private:
  std::shared_ptr<Sweep> sweep_;
  OwnedType edge_;
};

/// The same with persistent requests.
class ByDatatypePersistent {
 public:
  explicit ByDatatypePersistent(std::shared_ptr<Sweep> sweep)
      : sweep_(std::move(sweep)),
        edge_(edge_type(*sweep_)),
        requests_(*sweep_, 106, [&](std::int64_t plane, MPI_Request* request) {
          MPI_Send_init(sweep_->edge(plane), 1, edge_.get(), sweep_->to(), 106, sweep_->team.comm, request);
        }) {}
  void run() {
    MPI_Request* requests = requests_.of(sweep_->next());
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }

 private:
  std::shared_ptr<Sweep> sweep_;
  OwnedType edge_;
  Requests requests_;
};

Case make(const Team& team, std::int64_t n) {
  const auto edge = static_cast<std::size_t>(n * variables * 8);
  auto sweep = std::make_shared<Sweep>(
      Sweep{team, n, AlignedMemory(planes * static_cast<std::size_t>(n) * edge), AlignedMemory(planes * edge)});
  Case out;
  out.bytes = edge;
  out.peers = out.messages = 1;
  out.turns = planes;
  out.whole.fill = [sweep](unsigned seed) {
    sweep->turn = seed;
    const auto u = sweep->u.as<double>();
    for (std::size_t k = 0; k < u.size(); ++k) u[k] = value(sweep->team.rank, k, seed);
    for (double& ghost : sweep->ghost.as<double>()) ghost = -1;
  };
  out.rewrite = [sweep](unsigned seed) {
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      double* row = sweep->edge(plane);
      for (std::int64_t j = 0; j < sweep->n; ++j, row += sweep->n * variables)
        std::fill_n(row, variables, value(sweep->team.rank, static_cast<std::size_t>(j), seed));
    }
  };
  out.whole.difference = [sweep](unsigned seed) { return difference(*sweep, seed); };
  out.methods = {planned(sweep), method_of<ByHand>("hand", sweep),
                 method_of<ByHandPersistent>("hand, persistent", sweep), method_of<ByDatatype>("datatypes", sweep),
                 method_of<ByDatatypePersistent>("datatypes, persistent", sweep)};
  out.memory = sweep;
  return out;
}

}  // namespace

void add_sweeps(std::vector<Workload>& to) {
  for (const std::int64_t n : {12, 102})
    to.push_back(
        {fmt::format("sweep, edge of plane k, {} x 5", n), {}, [n](const Team& team) { return make(team, n); }});
}

}  // namespace kplan::bench
