#pragma once
// What a fuzzer holds to be true.

#include <cstdio>
#include <cstdlib>
#include <string_view>

/// Shows what happened and aborts where `holds` is false.
inline void require(bool holds, std::string_view what, std::string_view on) {
  if (holds) return;
  std::fprintf(stderr, "%.*s\n%.*s\n", static_cast<int>(what.size()), what.data(), static_cast<int>(on.size()),
               on.data());
  std::abort();
}
