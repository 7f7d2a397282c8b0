#pragma once
// What the compiler service did so far, and what it took.

#include <cstdint>
#include <string>

namespace kplan::jit {

/// Counts of kernels and sums of microseconds since the process began. What happens in the background counts too.
struct Statistics {
  std::uint64_t asked = 0;        ///< specs given to `compile`
  std::uint64_t from_memory = 0;  ///< of these: somebody held a kernel of the same spec
  std::uint64_t too_long = 0;     ///< of these: never to have machine code
  std::uint64_t from_disk = 0;    ///< code found on disk
  std::uint64_t generated = 0;    ///< code made by the generator
  std::uint64_t failed = 0;       ///< the generator failed
  std::uint64_t dropped = 0;      ///< released before their turn came in the background
  double plugin_load_us = 0;
  double emission_us = 0;  ///< specs to LLVM IR
  double codegen_us = 0;   ///< LLVM IR to machine code
  double linking_us = 0;
  double placing_us = 0;  ///< into executable memory
  double disk_us = 0;     ///< looking up, reading and writing
  double waiting_us = 0;  ///< for other processes that were making the same code
  std::string last_failure;

  Statistics& operator+=(const Statistics& more);
};

}  // namespace kplan::jit
