#pragma once
// Sparse exchanges between few ranks that all share memory: a pipe for each two of them, through which every rank tells
// every other in each exchange what it sends, if anything. Nobody has to find out when it has ended.

#include <memory>
#include <vector>

#include "transports/in_flight.hpp"
#include "transports/shared/letter_pipe.hpp"

namespace kplan::transport {

/// The pipes of one rank, by rank; its own place is not used.
struct Pipes {
  std::vector<PipeMemory> outgoing, incoming;
  std::vector<std::shared_ptr<Distance>> distances;
  LetterWays ways;
};

class SharedExchange : public SparseExchange {
 public:
  /// Gives up what the last exchange brought, and memory for the next. False where it was not seen to be complete.
  virtual bool forget() noexcept = 0;
};

std::unique_ptr<SharedExchange> shared_exchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight);

}  // namespace kplan::transport
