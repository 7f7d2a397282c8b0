#pragma once
// A transport that carries bytes by itself, as the node path needs it.

#include <memory>

#include "kplan/transport.hpp"
#include "transports/in_flight.hpp"

namespace kplan::transport {

class Backend : public Transport {
 public:
  /// What its progress() and its collective calls move on.
  virtual const std::shared_ptr<InFlightList>& in_flight() const = 0;
};

}  // namespace kplan::transport
