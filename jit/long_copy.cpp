#include "jit/long_copy.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kplan::jit {

#if defined(__x86_64__)

namespace {

/// Shorter ones memcpy copies as fast.
constexpr std::size_t least_bytes = std::size_t{16} << 10;
/// In the last cache it is faster: what is copied by `rep movsb` is not read where it is overwritten.
constexpr std::size_t first_of_last_cache = std::size_t{768} << 10, end_of_last_cache = std::size_t{2} << 20;

[[gnu::target("avx2")]] void copy_asking_ahead(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t line = 64, vector = sizeof(__m256i), ahead = 512;
  std::size_t done = 0;
  for (; done + line <= bytes; done += line) {
    __builtin_prefetch(from + done + ahead, /*rw=*/0);
    __builtin_prefetch(to + done + ahead, /*rw=*/1);
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + done)),
                  second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + done + vector));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + done), first);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + done + vector), second);
  }
  std::memcpy(to + done, from + done, bytes - done);
}

bool asks_ahead() {
  static const bool out = __builtin_cpu_is("intel") && __builtin_cpu_supports("avx2");
  return out;
}

}  // namespace

void* copy_long(void* to, const void* from, std::size_t bytes) noexcept {
  const bool is_in_last_cache = bytes >= first_of_last_cache && bytes < end_of_last_cache;
  if (bytes < least_bytes || is_in_last_cache || !asks_ahead()) return std::memcpy(to, from, bytes);
  copy_asking_ahead(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  return to;
}

#else

void* copy_long(void* to, const void* from, std::size_t bytes) noexcept { return std::memcpy(to, from, bytes); }

#endif

}  // namespace kplan::jit
