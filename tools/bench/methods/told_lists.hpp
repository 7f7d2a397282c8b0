#pragma once
// Ghost gathers where only receivers know what they want: owners are told once, when the exchange is made ready.

#include "tools/bench/methods/exchange_methods.hpp"

namespace kplan::bench {

/// Collective. What this rank has to send, as the others tell it: their counts by MPI_Alltoall, their lists by
/// messages. Of exchanges that receive from one list of indices of each peer.
std::vector<Link> told_sends(const Exchange& exchange);

/// packed_persistent with such sends.
Method packed_told(SharedExchange exchange);

}  // namespace kplan::bench
