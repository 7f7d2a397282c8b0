#pragma once
// Pipes that exchange objects use one after the other, the same on all ranks: making one costs nothing then.

#include <memory>

#include "transports/shared/exchange.hpp"

namespace kplan::transport {

/// What an object carried goes with it.
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
