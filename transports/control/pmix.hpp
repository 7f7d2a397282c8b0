#pragma once
// The launcher's side of start-up, by PMIx and without MPI. The library is opened when it is first needed.

#include <memory>
#include <string>

#include "kplan/transport.hpp"

namespace kplan::transport::control {

/// A session with the launcher's server; all that it is for is that ranks find rank 0.
class Pmix {
 public:
  /// Null if there is no launcher that speaks it, or no library of it.
  static std::unique_ptr<Pmix> connect();
  virtual ~Pmix() = default;

  virtual int rank() const = 0;
  /// Asks the launcher. Errors: TransportError.
  virtual int size() const = 0;
  /// Collective over the launched processes: gives all what rank 0 says, whose session must last until they have it.
  /// Waits for rank 0 alone. Errors: TransportError.
  virtual std::string tell(const std::string& of_rank_0, Clock::time_point deadline) = 0;
};

}  // namespace kplan::transport::control
