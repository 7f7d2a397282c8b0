#pragma once
// How a rank waits that has nothing to do.

namespace kplan::transport {

/// Whether `ranks` on this machine are more than the cores that they can have.
bool is_oversubscribed(int ranks);

/// How many rounds in vain a rank spins (hardly any, if oversubscribed), and then yields.
struct Patience {
  unsigned spins = 512, yields = 1024;
};

/// Waits a little after `idle_rounds` rounds in vain: spins first, then yields the core, then sleeps for 50 to 200 us.
void pause_thread(unsigned idle_rounds, bool oversubscribed, Patience patience = {});

}  // namespace kplan::transport
