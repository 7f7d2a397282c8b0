#pragma once
// Copies of long runs, for generated code and whoever copies as it does.

#include <cstddef>

namespace kplan::jit {

/// As memcpy; returns `to`. On processors of Intel with AVX2 it asks for lines ahead where that is faster: 0.8 of the
/// time of memcpy out of cold caches, 0.6 to 0.8 in the second level, 0.7 to 0.9 in memory (Cascade Lake).
void* copy_long(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace kplan::jit
