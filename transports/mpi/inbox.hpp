#pragma once
// The letters that come to a rank in one exchange after the other, from the moment when they are matched.

#include <vector>

#include "transports/letter.hpp"
#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

class Inbox {
 public:
  explicit Inbox(World& world) : world_(&world) {}

  /// Begins anew; the letters' memory is used again. Nothing may be arriving.
  void clear();
  /// Takes a letter of the own rank, at once.
  void take_own(std::span<const std::byte> bytes);
  /// Whether a letter was there, from `source` or from any rank; it is arriving then.
  bool match(int source, int tag);
  /// Notes which letters have come since they were matched. Never blocks.
  void finish();
  bool is_arriving() const { return !arriving_.empty(); }
  std::vector<int> arriving_from() const;

  /// Those that have come.
  std::span<const ReceivedLetter> received() const { return received_; }
  /// Once none is arriving: from the order in which they came to that of senders and of sending.
  void order();

  /// Hands over what is arriving.
  void close();
  /// Gives up all memory, when MPI has failed and may still write to it.
  void leak();

 private:
  struct Incoming {
    LetterPtr letter;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  World* world_;
  std::vector<Incoming> incoming_;     // in the order in which they were matched
  std::vector<std::size_t> arriving_;  // places in incoming_
  std::vector<ReceivedLetter> received_;
  LetterPool pool_;
};

}  // namespace kplan::transport::mpi_backend
