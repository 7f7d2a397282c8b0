#pragma once
// How a rank waits that has nothing to do.

namespace kplan::transport {

/// Whether `ranks` on this machine are more than the cores that they can have.
bool is_oversubscribed(int ranks);

/// Waits a little after `idle_rounds` rounds in vain: spins first (hardly, if oversubscribed), then yields the
/// core, then, after `yields` more rounds, sleeps for 50 to 200 us.
void pause_thread(unsigned idle_rounds, bool oversubscribed, unsigned yields = 1024);

}  // namespace kplan::transport
