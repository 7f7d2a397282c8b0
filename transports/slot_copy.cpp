#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kplan/transport.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace kplan::transport {

#if defined(__x86_64__)

namespace {

void copy_non_temporal(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t line = 64, vector = sizeof(__m128i);
  const std::size_t before = std::min(bytes, static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(to) % line));
  std::memcpy(to, from, before);
  std::size_t done = before;
  for (; bytes - done >= line; done += line)
    for (std::size_t k = done; k < done + line; k += vector)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
  std::memcpy(to + done, from + done, bytes - done);
  _mm_sfence();
}

void copy_whole_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

}  // namespace

void copy_to_slot(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores) {
  switch (stores) {
    case Stores::non_temporal: return copy_non_temporal(to, from, bytes);
    case Stores::whole_lines: return copy_whole_lines(to, from, bytes);
    case Stores::cached: break;
  }
  std::memcpy(to, from, bytes);
}

#else

void copy_to_slot(std::byte* to, const std::byte* from, std::size_t bytes, Stores) { std::memcpy(to, from, bytes); }

#endif

}  // namespace kplan::transport
