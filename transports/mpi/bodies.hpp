#pragma once
// Bodies of letters: each is a message from where its sender has it to where its receiver wants it.

#include <span>
#include <vector>

#include "transports/letter.hpp"
#include "transports/mpi/matched_message.hpp"
#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

class Bodies {
 public:
  Bodies(World& world, int tag) : world_(&world), tag_(tag) {}

  void send(int to, std::span<const std::span<const std::byte>> regions);
  /// See SparseExchange::place_body.
  void place(int from, std::span<const std::span<std::byte>> regions);
  /// Receives those that are there and have no place yet.
  void take_early();
  /// Whether those that were sent have left, and those that have a place have come there. Drives MPI.
  bool are_done() { return (incoming_.empty() && outgoing_.empty()) || end_those_done(); }
  void name_awaited(std::vector<int>& ranks) const;

  /// Waits until KPLAN_TIMEOUT has passed for what is being written to the program's memory, a second for what others
  /// may read there, and hands over what is under way then.
  void close(const std::shared_ptr<const void>& memory);
  /// Gives up all memory, when MPI has failed and may still write to it.
  void leak();

 private:
  bool end_those_done();

  /// One that has a place, or is arriving, or is kept.
  struct Incoming {
    int from = 0;
    bool is_placed = false, is_matched = false;
    std::span<const std::span<std::byte>> regions;  ///< of its place
    LetterPtr kept;                                 ///< what lies elsewhere; null: it goes to its place
    MPI_Request request = MPI_REQUEST_NULL;         ///< once it is matched
  };
  struct Outgoing {
    int to = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void receive(Incoming& body, MatchedMessage& message);
  bool has_come(Incoming& body);

  World* world_;
  int tag_;
  std::vector<Incoming> incoming_;  ///< of one sender in the order in which it sent them
  std::vector<Outgoing> outgoing_;
  LetterPool pool_;
};

}  // namespace kplan::transport::mpi_backend
