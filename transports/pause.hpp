#pragma once
// How a rank waits that has nothing to do.

namespace kplan::transport {

/// Whether `ranks` on this machine are more than the cores that they can have.
bool is_oversubscribed(int ranks);

/// Waits a little after `idle_rounds` rounds in vain: spins first (hardly, if oversubscribed), then yields the
/// core, then sleeps for 50 to 200 us.
void pause_thread(unsigned idle_rounds, bool oversubscribed);

}  // namespace kplan::transport
