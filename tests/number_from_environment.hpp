#pragma once
#include <cstdint>
#include <cstdlib>

namespace kplan::test {

/// How many, or which, as whoever runs the tests says in that environment variable.
inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace kplan::test
