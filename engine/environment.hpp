#pragma once
// The environment of the whole library, looked through at once.

namespace kplan {

/// Reads every variable that kplan goes by, also those that this program may not need. Throws PlanError KP-E0xx for one
/// that it cannot read, and KP-E013 for one whose name is that of another with a slip in it. Local.
void check_environment();

}  // namespace kplan
