#pragma once
// The environment variables of this folder that are not in kplan/transport.hpp, and all of them at once.

#include <string_view>
#include <vector>

namespace kplan::transport {

/// Whether channels over libfabric may write into their receivers' memory: KPLAN_OFI_ONE_SIDED, `on` (the default) or
/// `off`. Errors: PlanError for anything else in that variable.
bool one_sided_from_environment();

/// Reads all variables that transports, and the engine where it sends, go by, but for those that start a world, which
/// only that can judge. Returns the names of all. Errors: PlanError for the first that cannot be read.
std::vector<std::string_view> checked_variables();

}  // namespace kplan::transport
