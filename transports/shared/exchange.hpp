#pragma once
// Sparse exchanges between few ranks that all share memory: a pipe for each two of them, through which every rank tells
// every other in each exchange what it sends, if anything. Nobody has to find out when it has ended.

#include <vector>

#include "kplan/transport.hpp"
#include "transports/in_flight.hpp"
#include "transports/shared/distance.hpp"
#include "transports/shared/pipe.hpp"

namespace kplan::transport {

/// The pipes of one rank, by rank; its own place is not used.
struct Pipes {
  std::vector<PipeMemory> outgoing, incoming;
  std::vector<std::shared_ptr<Distance>> distances;
  std::size_t chunk_bytes = 0;         ///< the same on all ranks
  std::size_t piece_bytes = 0;         ///< of bodies in one chunk; 0: letters have none
  bool share_cores = false;            ///< the ranks
  std::size_t non_temporal_bytes = 0;  ///< letters of so many and more go past the caches where they are far; 0: none
};

std::unique_ptr<SparseExchange> shared_exchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight);

/// Pipes that exchange objects use one after the other, the same on all ranks: making one costs nothing then. What an
/// object carried goes with it.
class LentPipes {
 public:
  LentPipes(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight);
  ~LentPipes();
  LentPipes(const LentPipes&) = delete;
  LentPipes& operator=(const LentPipes&) = delete;

  /// Not while another object of this rank's has them, nor when one has left letters in them: was destroyed before it
  /// was complete, or had an exchange whose receivers knew their sources.
  bool are_free() const;
  /// The next object, where they are free on all ranks.
  std::unique_ptr<SparseExchange> lend();

 private:
  class Borrower;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kplan::transport
