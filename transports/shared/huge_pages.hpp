#pragma once
// Huge pages of memory that programs allocate.

#include <cstddef>

namespace kplan::transport {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
/// Shorter allocations have small pages.
inline constexpr std::size_t least_for_huge_pages = 2 * huge_page_bytes;

}  // namespace kplan::transport
