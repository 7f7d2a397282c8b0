// How it works: as MPI's own benchmarks send. The persistent requests are two for sending, since rank 1 sends back what
// it received.
#include <cstring>

#include "tools/bench/ladder/paths.hpp"

namespace kplan::bench {
namespace {

constexpr int tag = 7;

Path blocking(const Team& pair, Ends& ends) {
  const auto count = static_cast<int>(ends.out.size_bytes());
  const int peer = 1 - pair.rank;
  const MPI_Comm comm = pair.comm;
  std::byte *out = ends.out.data(), *in = ends.in.data();
  return {
      "MPI blocking",
      [=, rank = pair.rank] {
        if (rank == 0) MPI_Send(out, count, MPI_BYTE, peer, tag, comm);
        MPI_Recv(in, count, MPI_BYTE, peer, tag, comm, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(in, count, MPI_BYTE, peer, tag, comm);
      },
      [=] { MPI_Sendrecv(out, count, MPI_BYTE, peer, tag, in, count, MPI_BYTE, peer, tag, comm, MPI_STATUS_IGNORE); }};
}

/// Persistent requests from `out` and `in`, or through buffers with a copy at either end.
class Persistent {
 public:
  Persistent(const Team& pair, Ends& ends, bool is_copied)
      : ends_(ends), rank_(pair.rank), bytes_(ends.out.size_bytes()), is_copied_(is_copied) {
    if (is_copied) buffers_ = std::make_unique<Ends>(pair, bytes_);
    const auto count = static_cast<int>(bytes_);
    const int peer = 1 - rank_;
    Ends& wire = is_copied ? *buffers_ : ends;
    const std::byte* answer = is_copied ? buffers_->out.data() : ends.in.data();
    MPI_Send_init(wire.out.data(), count, MPI_BYTE, peer, tag, pair.comm, &send_);
    MPI_Send_init(answer, count, MPI_BYTE, peer, tag, pair.comm, &answer_);
    MPI_Recv_init(wire.in.data(), count, MPI_BYTE, peer, tag, pair.comm, &receive_);
  }
  ~Persistent() {
    for (MPI_Request* request : {&send_, &answer_, &receive_}) MPI_Request_free(request);
  }
  Persistent(const Persistent&) = delete;
  Persistent& operator=(const Persistent&) = delete;

  void echo() {
    MPI_Start(&receive_);
    if (rank_ == 0) send(&send_, ends_.out);
    receive();
    if (rank_ == 1) send(&answer_, ends_.in);
    MPI_Wait(rank_ == 0 ? &send_ : &answer_, MPI_STATUS_IGNORE);
  }
  void both_ways() {
    MPI_Start(&receive_);
    send(&send_, ends_.out);
    receive();
    MPI_Wait(&send_, MPI_STATUS_IGNORE);
  }

 private:
  void send(MPI_Request* request, const AlignedMemory& from) {
    if (is_copied_) std::memcpy(buffers_->out.data(), from.data(), bytes_);
    MPI_Start(request);
  }
  void receive() {
    MPI_Wait(&receive_, MPI_STATUS_IGNORE);
    if (is_copied_) std::memcpy(ends_.in.data(), buffers_->in.data(), bytes_);
  }

  Ends& ends_;
  std::unique_ptr<Ends> buffers_;
  int rank_;
  std::size_t bytes_;
  bool is_copied_;
  MPI_Request send_ = MPI_REQUEST_NULL, answer_ = MPI_REQUEST_NULL, receive_ = MPI_REQUEST_NULL;
};

/// One copy a message: rank 0 makes those of an echo, both make one each in an exchange.
Path local_copy(const Team& pair, Ends& ends) {
  const auto copy = [out = ends.out.data(), in = ends.in.data(), bytes = ends.out.size_bytes()] {
    std::memcpy(in, out, bytes);
    asm volatile("" ::: "memory");
  };
  return {"memcpy (limit)",
          [copy, rank = pair.rank] {
            if (rank != 0) return;
            copy();
            copy();
          },
          copy};
}

}  // namespace

std::vector<Path> other_paths(const Team& pair, Ends& ends) {
  std::vector<Path> out{blocking(pair, ends)};
  for (const bool is_copied : {false, true}) {
    auto persistent = std::make_shared<Persistent>(pair, ends, is_copied);
    out.push_back({is_copied ? "MPI persistent, copied at both ends" : "MPI persistent",
                   [persistent] { persistent->echo(); }, [persistent] { persistent->both_ways(); }});
  }
  out.push_back(local_copy(pair, ends));
  return out;
}

}  // namespace kplan::bench
