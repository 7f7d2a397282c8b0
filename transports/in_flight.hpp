#pragma once
// What is under way on a transport and must be moved on by a rank that waits for something else.

#include <memory>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::transport {

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
  void add(InFlight& moved) { moved_.push_back(&moved); }
  void remove(InFlight& moved);
  bool is_empty() const { return moved_.empty() && leftovers_.empty(); }
  /// Moves all; what is moved may add to the list and remove from it, and may call this again.
  void move_on();

  /// Sends it as time goes by.
  void adopt(std::unique_ptr<Leftover> leftover);
  /// For when a transport ends and nothing moves it on any more: waits up to a second for what is left to be sent, and
  /// as long at once for each that is adopted later. What has not gone by then is lost.
  void end();

 private:
  void send_leftovers();
  void settle();

  std::vector<InFlight*> moved_;
  std::vector<std::unique_ptr<Leftover>> leftovers_;
  bool has_ended_ = false;
};

}  // namespace kplan::transport
