#pragma once
// A transport that carries bytes by itself, as the node path needs it.

#include <memory>

#include "kplan/transport.hpp"
#include "transports/codes.hpp"
#include "transports/in_flight.hpp"

namespace kplan::transport {

class Backend : public Transport {
 public:
  /// Throws where no collective call can be made any more: TransportError KP-T008.
  virtual void require_usable() const {
    if (has_failed_)
      throw TransportError(codes::unusable, "a collective call after one that failed; make a new transport");
  }
  /// What its progress() and its collective calls move on.
  virtual const std::shared_ptr<InFlightList>& in_flight() const = 0;
  void keep_moving(InFlight& moved) override { in_flight()->add(moved); }
  void let_go(InFlight& moved) override { in_flight()->remove(moved); }
  /// NBX takes a synchronous message and a barrier in steps: several times what a few plain messages do.
  bool tells_faster() const override { return size() <= 16; }

 protected:
  /// Makes part of a collective call. Where it throws, other ranks may have come through it: no other call can follow.
  template <class F>
  auto or_fail(const F& part) {
    try {
      return part();
    } catch (...) {
      has_failed_ = true;
      throw;
    }
  }

 private:
  bool has_failed_ = false;
};

}  // namespace kplan::transport
