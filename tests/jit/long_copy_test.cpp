// Copies of long runs, on either side of the lengths from and up to which they ask for lines ahead.
#include "jit/long_copy.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

TEST_CASE("long copies copy every byte, and none besides") {
  constexpr std::size_t kib = 1024, room = 64;
  for (const std::size_t about : {std::size_t{0}, 16 * kib, 100 * kib, 768 * kib, 2048 * kib, 3000 * kib})
    for (const std::size_t more : {0, 1, 40, 63, 64})
      for (const std::size_t offset : {0, 1, 24}) {
        const std::size_t bytes = about < room ? more : about - 32 + more;
        std::vector<unsigned char> from(bytes + offset + 1), to(bytes + 2 * room, 0xee), expected = to;
        for (std::size_t k = 0; k < from.size(); ++k) from[k] = static_cast<unsigned char>(k * 31 + k / 256);
        std::memcpy(expected.data() + room - offset, from.data() + offset, bytes);
        REQUIRE(kplan::jit::copy_long(to.data() + room - offset, from.data() + offset, bytes) ==
                to.data() + room - offset);
        REQUIRE(to == expected);
      }
}
