#pragma once

namespace kplan::tests {

/// `lost_rank all [RANKS]`: all ranks are killed while they run a plan; 0 if nothing of their shared memory is left.
int all_killed(int argc, char** argv);

}  // namespace kplan::tests
