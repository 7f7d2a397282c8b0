// Copies into slots, and what decides about them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "kplan/transport.hpp"
#include "transports/shared/distance.hpp"
#include "transports/shared/pipe.hpp"
#include "transports/shared/ring.hpp"

using namespace kplan::transport;

TEST_CASE("copies into slots write what they are to, and nothing beside it, wherever the bytes lie") {
  std::mt19937 random(7);
  std::vector<std::byte> from(5000);
  for (std::byte& b : from) b = static_cast<std::byte>(random());
  const std::byte other{0xa5};
  for (int k = 0; k < 3000; ++k) {
    const std::size_t bytes = random() % (k % 2 == 0 ? 200 : 4000), at = random() % 300, source = random() % 300;
    std::vector<std::byte> to(5000, other), expected = to;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(at));
    constexpr Stores ways[] = {Stores::cached, Stores::non_temporal, Stores::whole_lines};
    copy_to_slot(to.data() + at, from.data() + source, bytes, ways[k / 2 % 3]);
    if (to != expected) {
      CAPTURE(bytes, at, source);
      FAIL();
    }
  }
}

TEST_CASE("lines are near until looks say otherwise, and looking changes none") {
  using namespace std::chrono_literals;
  alignas(64) std::uint64_t line = 77;
  auto* const bytes = reinterpret_cast<std::byte*>(&line);
  Distance all_far(0ns), near(1s);
  CHECK(all_far.is_far(nullptr, 8));
  CHECK(all_far.is_far(bytes, 8));
  for (int k = 0; k < 100; ++k) CHECK_FALSE(near.is_far(bytes, 1 << 20));
  CHECK(line == 77);

  Distance unknown(1ns);
  CHECK_FALSE(unknown.is_far(bytes, 8));          // it is not time to look
  CHECK_FALSE(unknown.is_far(nullptr, 1 << 20));  // at what?
}

TEST_CASE("peers have a distance each") {
  Distances distances(std::chrono::nanoseconds(120), /*share_cores=*/false);
  CHECK(distances.to(1) == distances.to(1));
  CHECK(distances.to(1) != distances.to(2));
  CHECK(distances.from(1) == distances.from(1));
  CHECK(distances.from(1) != distances.to(1));
}

TEST_CASE("rings of short messages stay in the first cache, those of longer ones leave it") {
  for (const std::size_t bytes : {1, 100, 256, 800, 1024, 4096}) {
    const int slots = best_ring_slots(bytes, 2, /*share_cores=*/false);
    CHECK(slots >= 8);
    CHECK(slots <= 32);
    CHECK(static_cast<std::size_t>(slots) * bytes <= 32768);
  }
  CHECK(best_ring_slots(800, 2, /*share_cores=*/false) == 10);
  CHECK(best_ring_slots(4097, 2, /*share_cores=*/false) == 32);
}

TEST_CASE("ranks that share cores write the same few lines again and again") {
  constexpr std::size_t letter_bytes = 16384, chunk_bytes = 4 * letter_bytes;
  CHECK(best_ring_slots(letter_bytes, 4, /*share_cores=*/false) == 32);
  CHECK(best_ring_slots(letter_bytes, 4, /*share_cores=*/true) == 4);
  CHECK(best_ring_slots(1 << 20, 4, /*share_cores=*/true) == 2);
  for (const bool share_cores : {false, true}) {
    const std::size_t bytes = pipe_bytes(chunk_bytes);
    const std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(64, bytes)), std::free);
    std::fill_n(memory.get(), bytes, std::byte{0});
    PipeSender sender({memory, memory.get()}, chunk_bytes, share_cores);
    PipeReceiver receiver({memory, memory.get()}, chunk_bytes);
    std::set<std::byte*> places;
    for (int k = 0; k < 8; ++k) {
      places.insert(sender.free(letter_bytes));
      sender.put(letter_bytes, letter_bytes, Holds::letter, true);
      REQUIRE(receiver.arrived());
      receiver.take();
      receiver.release();
    }
    CHECK(places.size() == (share_cores ? 2 : 4));
  }
}

TEST_CASE("a pipe tells of lines that its receiver has read, and of no others") {
  constexpr std::size_t chunk_bytes = 4096, short_bytes = 40, long_bytes = 2000;
  const std::size_t bytes = pipe_bytes(chunk_bytes);
  const std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(64, bytes)), std::free);
  std::fill_n(memory.get(), bytes, std::byte{0});
  PipeSender sender({memory, memory.get()}, chunk_bytes, /*share_cores=*/false);
  PipeReceiver receiver({memory, memory.get()}, chunk_bytes);
  const auto send = [&](std::size_t count) {
    sender.put(count, count, Holds::letter, true);
    REQUIRE(receiver.arrived());
    receiver.take();
    receiver.release();
  };
  for (int k = 0; k < 6; ++k) {  // letters that end on the first line of their slots
    REQUIRE(sender.free(8));
    send(8);
  }
  for (int k = 0; k < 2; ++k) {
    REQUIRE(sender.free(long_bytes));
    CHECK_FALSE(sender.is_worn());
    send(long_bytes);
  }
  REQUIRE(sender.free(short_bytes));
  send(short_bytes);
  for (int k = 0; k < 2; ++k) {
    REQUIRE(sender.free(long_bytes));
    CHECK(sender.is_worn());
    send(long_bytes);
  }
}
