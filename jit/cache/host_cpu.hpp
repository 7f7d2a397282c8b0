#pragma once
// Which processor this is, for code that is made for it alone.

#include <string>

namespace kplan::jit {

/// Text that is equal on processors for which a code generator makes the same code, and different wherever the
/// generator could tell two processors apart. Cost: microseconds.
std::string host_cpu();

}  // namespace kplan::jit
