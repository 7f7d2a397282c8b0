#pragma once
// What is under way on a transport and must be moved on by a rank that waits for something else.

#include <vector>

namespace kplan::transport {

/// Something that other ranks may need to be moved on while its own rank waits for something else.
class InFlight {
 public:
  /// Moves it as far as it goes without blocking. May take itself off the list that it is on.
  virtual void move_on() = 0;

 protected:
  ~InFlight() = default;
};

/// What is in flight on a transport.
class InFlightList {
 public:
  void add(InFlight& exchange) { exchanges_.push_back(&exchange); }
  void remove(InFlight& exchange);
  void move_on();

 private:
  std::vector<InFlight*> exchanges_;
};

}  // namespace kplan::transport
