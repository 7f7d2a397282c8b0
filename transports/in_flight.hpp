#pragma once
// What is under way on a transport and must be moved on by a rank that waits for something else.

#include <memory>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::transport {

/// Something that other ranks may need to be moved on while its own rank waits for something else.
class InFlight {
 public:
  /// Moves it as far as it goes without blocking. May take itself off the list that it is on.
  virtual void move_on() = 0;

 protected:
  ~InFlight() = default;
};

/// What an object that was destroyed has left to be sent.
class Leftover {
 public:
  virtual ~Leftover() = default;
  /// Sends as much as can be sent now; whether that was the rest.
  virtual bool send() = 0;
};

/// What is in flight on a transport.
class InFlightList {
 public:
  void add(InFlight& exchange) { exchanges_.push_back(&exchange); }
  void remove(InFlight& exchange);
  void move_on();

  /// Sends it as time goes by.
  void adopt(std::unique_ptr<Leftover> leftover);
  /// For when a transport ends and nothing moves it on any more: waits up to a second for what is left to be sent, and
  /// as long at once for each that is adopted later. What has not gone by then is lost.
  void end();

 private:
  void send_leftovers();
  void settle();

  std::vector<InFlight*> exchanges_;
  std::vector<std::unique_ptr<Leftover>> leftovers_;
  bool has_ended_ = false;
};

}  // namespace kplan::transport
