#pragma once
// Who started this process: nobody in particular, or a launcher that made it one rank of several.

#include <optional>

namespace kplan::cli {

/// What the launcher has put into the environment; a number is missing where it does not say.
struct Launch {
  std::optional<int> rank, size;
  /// Whether there is a launcher at all.
  bool is_launched() const { return rank || size; }
};
Launch launch_from_environment();

}  // namespace kplan::cli
