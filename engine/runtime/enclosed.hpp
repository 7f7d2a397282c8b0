#pragma once
// Short messages that letters carry behind what else they hold. Where a varying statement sends every rank a letter in
// every run, what other statements of its phase send there in short messages needs none of its own.

#include <vector>

#include "engine/runtime/ready_call.hpp"

namespace kplan {

/// What goes to or comes from one rank in short messages, which the last bytes of its letter are.
struct EnclosedMessage {
  int peer = 0;  ///< a world rank
  std::size_t bytes = 0;
  std::vector<ReadyCall> calls;
};

/// What the letters of one statement carry, by ascending peer.
struct Enclosed {
  std::vector<EnclosedMessage> outgoing, incoming;
};

}  // namespace kplan
