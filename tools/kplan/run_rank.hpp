#pragma once
// One rank's part of kplan run, the same on every transport.

#include <memory>

#include "tools/kplan/agreed_failure.hpp"
#include "tools/kplan/verify.hpp"

namespace kplan::cli {

/// What the run came to, the same on all ranks.
struct Outcome {
  Failure failure;
  std::string output;  ///< for stdout
};

/// Collective over the transport: compiles, binds, runs, prints, verifies. Throws TransportError; all other failures
/// are agreed on.
Outcome run_rank(const std::shared_ptr<transport::Transport>& transport, const Contents& contents,
                 Expectation& expectation, const Options& options);

}  // namespace kplan::cli
