#pragma once
// A transport that carries bytes by itself, as the node path needs it.

#include <memory>

#include "kplan/transport.hpp"
#include "transports/in_flight.hpp"

namespace kplan::transport {

class Backend : public Transport {
 public:
  /// Throws where no collective call can be made any more: TransportError KP-T008.
  virtual void require_usable() const = 0;
  /// What its progress() and its collective calls move on.
  virtual const std::shared_ptr<InFlightList>& in_flight() const = 0;
  /// NBX takes a synchronous message and a barrier in steps: several times what a few plain messages do.
  bool tells_faster() const override { return size() <= 16; }
};

}  // namespace kplan::transport
