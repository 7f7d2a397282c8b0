// How it works: a graph communicator of exactly the ranks that exchange, and MPI-3's neighbour collectives on it.
#include "tools/bench/exchange/packed_parts.hpp"
#include "tools/bench/exchange/typed_parts.hpp"
#include "tools/bench/methods/exchange_methods.hpp"

namespace kplan::bench {
namespace {

/// What both have: the graph, and what stays on this rank.
struct Graph {
  explicit Graph(const Exchange& e) : sources(peers_of(e, e.receives)), destinations(peers_of(e, e.sends)) {
    MPI_Comm graph = MPI_COMM_NULL;
    // Not MPI_UNWEIGHTED, which Open MPI takes for the absence of an array of no neighbours.
    const std::vector<int> in(sources.size() + 1, 1), out(destinations.size() + 1, 1);
    MPI_Dist_graph_create_adjacent(e.team.comm, static_cast<int>(sources.size()), sources.data(), in.data(),
                                   static_cast<int>(destinations.size()), destinations.data(), out.data(),
                                   MPI_INFO_NULL, 0, &graph);
    comm = OwnedComm(graph, MPI_Comm_free);
    for (const Link& l : e.receives)
      if (l.peer == e.team.rank) movers.emplace_back(l, e);
  }
  std::vector<int> sources, destinations;
  OwnedComm comm;
  std::vector<Mover> movers;
};

class Packed {
 public:
  explicit Packed(SharedExchange exchange)
      : exchange_(std::move(exchange)),
        graph_(*exchange_),
        sends_(*exchange_, PackedParts::Side::sends, graph_.destinations),
        receives_(*exchange_, PackedParts::Side::receives, graph_.sources),
        type_(basic_type(exchange_->wire_type())) {}
  void run() {
    sends_.pack();
    MPI_Neighbor_alltoallv(sends_.data, sends_.counts.data(), sends_.offsets.data(), type_, receives_.data,
                           receives_.counts.data(), receives_.offsets.data(), type_, graph_.comm.get());
    for (Mover& m : graph_.movers) m.move();
    receives_.unpack();
  }

 private:
  SharedExchange exchange_;
  Graph graph_;
  PackedParts sends_, receives_;
  MPI_Datatype type_;
};

class Typed {
 public:
  explicit Typed(SharedExchange exchange)
      : exchange_(std::move(exchange)),
        graph_(*exchange_),
        sends_(*exchange_, exchange_->sends, graph_.destinations),
        receives_(*exchange_, exchange_->receives, graph_.sources) {}
  void run() {
    MPI_Neighbor_alltoallw(sends_.base, sends_.counts.data(), sends_.offsets.data(), sends_.types.data(),
                           receives_.base, receives_.counts.data(), receives_.offsets.data(), receives_.types.data(),
                           graph_.comm.get());
    for (Mover& m : graph_.movers) m.move();
  }

 private:
  SharedExchange exchange_;
  Graph graph_;
  TypedParts sends_, receives_;
};

}  // namespace

Method neighbour_packed(SharedExchange exchange) {
  return method_of<Packed>("MPI_Neighbor_alltoallv, packed", std::move(exchange));
}

Method neighbour_typed(SharedExchange exchange) {
  return method_of<Typed>("MPI_Neighbor_alltoallw, types", std::move(exchange));
}

}  // namespace kplan::bench
