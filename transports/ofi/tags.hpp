#pragma once
// What the tags of messages mean: notes all have the same one, bulk messages one each. They need 48 bits, which is what
// the narrowest provider has (cxi).

#include <cstdint>

namespace kplan::transport::ofi_backend::tags {

inline constexpr std::uint64_t highest_bit = std::uint64_t{1} << 47;
inline constexpr std::uint64_t note = highest_bit;
inline constexpr int bits_of_number = 23;

/// The bulk message `number` of those from rank `sender` to a receiver; numbers come round after eight million.
inline std::uint64_t bulk(int sender, std::uint64_t number) {
  return static_cast<std::uint64_t>(sender) << bits_of_number | (number & ((std::uint64_t{1} << bits_of_number) - 1));
}
inline constexpr int most_ranks = 1 << 24;

}  // namespace kplan::transport::ofi_backend::tags
