#pragma once
// The middle of the star: a thread of rank 0's process that every rank is connected to. It carries collective calls and
// tells all ranks when one of them ends.

#include <string>

#include "transports/control/socket.hpp"

namespace kplan::transport::control {

/// What a member says to be let in, beside its rank: both ends must mean the same world.
std::string greeting(int size, const std::string& key);

/// Serves a world of `size` ranks at `listener` until they have ended, or the process does.
void serve(Socket listener, int size, const std::string& key);

}  // namespace kplan::transport::control
