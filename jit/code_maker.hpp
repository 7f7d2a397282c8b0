#pragma once
// Where machine code comes from: the disk cache, another process that is making it, or this process's generator.

#include <functional>
#include <optional>
#include <span>

#include "jit/cache/disk_cache.hpp"
#include "jit/code_arena.hpp"
#include "jit/generator.hpp"
#include "kplan/error.hpp"

namespace kplan::jit {

/// What became of one spec: code; or a failure; or neither, where there is no generator or nobody wants it any more.
struct MadeCode {
  PlacedCode code;
  std::optional<CompilerError> failure;
  bool is_unwanted = false;
};

class CodeMaker {
 public:
  CodeMaker();

  /// Code for all of the specs. `is_wanted(i)` is asked before each long step. Thread-safe. Adds to the statistics.
  std::vector<MadeCode> make(std::span<const Spec* const> specs, Urgency urgency,
                             const std::function<bool(std::size_t)>& is_wanted, Statistics& statistics) const;

 private:
  class Batch;
  DiskCache cache_;
  std::string identity_;  ///< what the code of every spec depends on
};

}  // namespace kplan::jit
