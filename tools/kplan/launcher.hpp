#pragma once
// Who started this process: nobody in particular, or a launcher that made it one rank of several.

#include <optional>

namespace kplan::cli {

/// What the launcher has put into the environment; a number is missing where it does not say.
struct Launch {
  std::optional<int> rank, size;
  bool is_rendezvous = false;  ///< the ranks find each other by KPLAN_RENDEZVOUS, for libfabric only
  /// Whether this process is one of several.
  bool is_launched() const { return rank || size || is_rendezvous; }
};
Launch launch_from_environment();

}  // namespace kplan::cli
