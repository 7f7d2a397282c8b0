// How it works: all receives are started before anything is sent.
#include "tools/bench/methods/hand_collectives.hpp"

#include "tools/bench/aligned_memory.hpp"

namespace kplan::bench {
namespace {

/// Persistent requests that are started and waited for together.
class Requests {
 public:
  Requests() = default;
  ~Requests() {
    for (MPI_Request& request : all_) MPI_Request_free(&request);
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  void add_send(const Team& team, std::span<double> from, int to, int tag) {
    MPI_Send_init(from.data(), static_cast<int>(from.size()), MPI_DOUBLE, to, tag, team.comm, &all_.emplace_back());
  }
  void add_receive(const Team& team, std::span<double> to, int from, int tag) {
    MPI_Recv_init(to.data(), static_cast<int>(to.size()), MPI_DOUBLE, from, tag, team.comm, &all_.emplace_back());
  }
  // No requests are an error to MPI where they have no address.
  void start() {
    if (!all_.empty()) MPI_Startall(static_cast<int>(all_.size()), all_.data());
  }
  void wait() { MPI_Waitall(static_cast<int>(all_.size()), all_.data(), MPI_STATUSES_IGNORE); }

 private:
  std::vector<MPI_Request> all_;
};

class Broadcasts {
 public:
  Broadcasts(const Team& team, std::span<double> x, std::span<double> back) {
    const int last = team.size - 1;
    for (int other = 0; other < team.size; ++other) {
      if (other == team.rank) continue;
      if (team.rank == 0) sends_there_.add_send(team, x, other, 120);
      if (team.rank == last) sends_back_.add_send(team, x, other, 121);
    }
    if (team.rank != 0) receive_there_.add_receive(team, x, 0, 120);
    if (team.rank != last) receive_back_.add_receive(team, back, last, 121);
  }
  void run() {
    receive_there_.start();
    receive_back_.start();
    sends_there_.start();
    receive_there_.wait();
    sends_back_.start();
    receive_back_.wait();
    sends_there_.wait();
    sends_back_.wait();
  }

 private:
  Requests receive_there_, receive_back_, sends_there_, sends_back_;
};

class Sums {
 public:
  Sums(const Team& team, std::span<double> x, const std::vector<Root>& roots) : x_(x) {
    int tag = 122;
    for (const Root& root : roots) {
      if (root.rank != team.rank) sends_.add_send(team, x, root.rank, tag);
      else add_parts(team, root, tag);
      ++tag;
    }
  }
  void run() {
    receives_.start();
    sends_.start();
    receives_.wait();
    for (const Mine& m : mine_) {
      double* __restrict to = m.result.data();
      const double* first = m.parts[0].as<double>().data();
      for (std::size_t k = 0; k < x_.size(); ++k) to[k] = x_[k] + first[k];
      for (std::size_t p = 1; p < m.parts.size(); ++p) {
        const double* part = m.parts[p].as<double>().data();
        for (std::size_t k = 0; k < x_.size(); ++k) to[k] += part[k];
      }
    }
    sends_.wait();
  }

 private:
  struct Mine {
    std::span<double> result;
    std::vector<AlignedMemory> parts;  ///< of the other ranks
  };
  void add_parts(const Team& team, const Root& root, int tag) {
    mine_.push_back({root.result, {}});
    for (int other = 0; other < team.size; ++other) {
      if (other == team.rank) continue;
      AlignedMemory& part = mine_.back().parts.emplace_back(x_.size_bytes());
      receives_.add_receive(team, part.as<double>(), other, tag);
    }
  }
  std::span<double> x_;
  Requests receives_, sends_;
  std::vector<Mine> mine_;
};

}  // namespace

Method hand_broadcasts(const Team& team, std::span<double> x, std::span<double> back) {
  return method_of<Broadcasts>("hand, persistent", team, x, back);
}

Method hand_sums(const Team& team, std::span<double> x, const std::vector<Root>& roots) {
  return method_of<Sums>("hand, persistent", team, x, roots);
}

}  // namespace kplan::bench
