#pragma once
// What the reference interpreter leaves in every rank's buffers, to compare with.

#include <exception>
#include <mutex>

#include "plans/reference.hpp"
#include "tools/kplan/contents.hpp"

namespace kplan::cli {

/// Made when first asked for, once for all threads. Thread-safe.
class Expectation {
 public:
  Expectation(const Contents& contents, std::int64_t size, std::int64_t repeat)
      : contents_(contents), size_(size), repeat_(repeat) {}

  /// Compares all buffers of a rank. Throws RunError KP-V001 that names the first difference, KP-V002 when the
  /// interpreter does not run what the engine has run.
  void compare(const RankMemory& mine);

 private:
  void interpret();

  const Contents& contents_;
  std::int64_t size_, repeat_;
  std::once_flag once_;
  std::vector<ReferenceRank> world_;
  std::exception_ptr failure_;
};

}  // namespace kplan::cli
