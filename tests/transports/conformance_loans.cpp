// Messages that are lent instead of sent. Where a transport lends nothing to the peer, it says so, and they are put.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>
#include <utility>

#include "tests/transports/blocks.hpp"
#include "tests/transports/ranks.hpp"

using namespace kplan::tests;
using kplan::transport::Blocks;

namespace {

constexpr std::size_t bytes = 4096;

/// Lends message `seq` or, where that cannot be, puts the regions' bytes; they are `bytes` long in all.
void lend_or_put(Transport& transport, Channel& channel, std::uint64_t seq,
                 const std::vector<const std::byte*>& regions) {
  std::byte* const slot = wait_for(transport, "a slot", [&] { return channel.send_slot(seq); });
  const bool is_lent = channel.lend(seq, regions);
  claim(is_lent == transport.lends_memory(1), "memory that was allocated is lent where any is");
  if (is_lent) return;
  const std::size_t each = bytes / regions.size();
  for (std::size_t k = 0; k < regions.size(); ++k) std::copy_n(regions[k], each, slot + k * each);
  channel.put(seq, bytes);
}

/// Takes message `seq` as it comes, and checks that it is that of `seed`.
void take(Transport& transport, Channel& channel, std::uint64_t seq, unsigned seed) {
  const std::byte* const slot = wait_for(transport, "a message", [&] { return channel.arrived(seq); });
  std::vector<std::byte> message(bytes);
  const auto regions = channel.lent(seq);
  for (std::size_t k = 0; k < regions.size(); ++k)
    std::copy_n(regions[k], bytes / regions.size(), message.data() + k * (bytes / regions.size()));
  if (regions.empty()) std::copy_n(slot, bytes, message.data());
  claim_filled(message.data(), bytes, seed, seq);
  channel.release(seq);
}

}  // namespace

TEST_CASE("lent regions are read where they lie, and may be changed once the message is sent", "[conformance]") {
  for (const int slots : {1, 2, 8}) {
    on_ranks(2, [=](Transport& transport) {
      const auto channel = open_one(transport, bytes, slots);
      const auto memory = transport.allocate(4 * bytes);
      for (std::uint64_t seq = 0; seq < 200; ++seq) {
        if (transport.rank() == 1) {
          take(transport, *channel, seq, 3);
          continue;
        }
        const std::size_t count = std::size_t{1} << seq % 4;  // 1, 2, 4, 8 regions, in any order
        std::vector<std::byte> message(bytes);
        fill(message.data(), bytes, 3, seq);
        std::vector<const std::byte*> regions;
        for (std::size_t k = 0; k < count; ++k) {
          std::byte* const region = memory.get() + (count - k) * (bytes / count);
          std::copy_n(message.data() + k * (bytes / count), bytes / count, region);
          regions.push_back(region);
        }
        lend_or_put(transport, *channel, seq, regions);
        wait_for(transport, "the regions", [&] { return channel->is_sent(seq); });
        std::fill_n(memory.get(), 4 * bytes, std::byte{0});
      }
      meet(transport);
    });
  }
}

TEST_CASE("a lent message that the receiver declines, or does not come for, is put instead", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    const auto channel = open_one(transport, bytes, 2);
    const auto memory = transport.allocate(bytes);
    const bool is_lent = transport.lends_memory(1 - transport.rank());
    for (std::uint64_t seq = 0; is_lent && seq < 100; ++seq) {
      const bool waits = seq % 2 == 0;
      if (transport.rank() == 1) {
        (void)wait_for(transport, "a message", [&] { return channel->arrived(seq); });
        if (!channel->lent(seq).empty()) channel->decline(seq);
        receive(transport, *channel, seq, bytes, 4);
        continue;
      }
      std::byte* const slot = wait_for(transport, "a slot", [&] { return channel->send_slot(seq); });
      const std::byte* region = memory.get();
      claim(channel->lend(seq, {&region, 1}), "it is lent");
      if (waits) std::this_thread::sleep_for(std::chrono::microseconds(200));  // the receiver comes, and refuses
      wait_for(transport, "the message back", [&] { return channel->take_back(seq); });
      claim(!channel->is_sent(seq), "it is not sent yet");
      fill(slot, bytes, 4, seq);
      channel->put(seq, bytes);
      claim(channel->is_sent(seq), "nothing is lent any more");
    }
    meet(transport);
  });
}

namespace {

/// Blocks of `bytes` bytes in all, in memory of four times as many.
std::vector<Blocks> blocks_in(std::byte* memory, std::uint64_t shape) {
  switch (shape % 5) {
    case 0: return {{memory + shape, {0}, {}, {}, bytes}};
    case 1: return {{memory, {5}, {4, 16}, {4000, 100}, 64}};
    case 2: return {{memory, {12288, 0, 8192}, {4}, {300}, 256}, {memory + 4096, {0}, {2, 32}, {2000, 16}, 16}};
    case 3: return {{memory, {7}, {1024}, {9}, 4}};                 // more than are copied at a time
    default: return {{memory, {3000, 0}, {8, 16}, {256, 16}, 16}};  // which follow each other
  }
}

}  // namespace

TEST_CASE("a message in blocks of any memory is fetched into others, or in parts", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    const auto channel = open_one(transport, bytes, 2);
    std::vector<std::byte> memory(4 * bytes, untouched), message(bytes);
    for (std::uint64_t seq = 0; seq < 200; ++seq) {
      if (transport.rank() == 1) {
        const std::byte* const slot = wait_for(transport, "a message", [&] { return channel->arrived(seq); });
        const bool is_fetched = channel->is_to_be_fetched(seq);
        claim(channel->lent(seq).empty(), "it is not read in place");
        if (!is_fetched) {
          std::copy_n(slot, bytes, message.data());
        } else if (seq % 3 == 0) {
          const std::size_t part = bytes / (1 + seq % 4) + seq % 2;
          for (std::size_t at = 0; at < bytes; at += part)
            claim(channel->fetch_part(seq, at, message.data() + at, std::min(part, bytes - at)), "it can be had");
          claim(channel->fetch_part(seq, 100, message.data() + 100, 1000), "some of it can be had again");
        } else {
          const std::vector<Blocks> blocks = blocks_in(memory.data(), seq / 7);
          channel->place(blocks);
          claim(channel->fetch(seq), "it can be had");
          std::size_t n = 0;
          each_byte(blocks, [&](std::byte& b) { message[n++] = std::exchange(b, untouched); });
          claim(std::ranges::count(memory, untouched) == 4 * bytes, "nothing else is written");
        }
        claim_filled(message.data(), bytes, 8, seq);
        channel->release(seq);
        continue;
      }
      std::byte* const slot = wait_for(transport, "a slot", [&] { return channel->send_slot(seq); });
      fill(message.data(), bytes, 8, seq);
      const std::vector<Blocks> blocks = blocks_in(memory.data(), seq / 2);
      std::size_t n = 0;
      each_byte(blocks, [&](std::byte& b) { b = message[n++]; });
      claim(n == bytes, "the blocks are the message");
      channel->place(blocks);
      const bool is_lent = channel->lend_to_fetch(seq);
      claim(is_lent || transport.fetch_bytes(1) == 0, "what can be fetched can be lent for it");
      if (!is_lent) {
        std::ranges::copy(message, slot);
        channel->put(seq, bytes);
      }
      wait_for(transport, "the region", [&] { return channel->is_sent(seq); });
    }
    meet(transport);
  });
}

TEST_CASE("memory that comes after memory that was freed is not taken for it", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    const auto channel = open_one(transport, bytes, 1);
    for (std::uint64_t seq = 0; seq < 200; ++seq) {
      if (transport.rank() == 1) {
        take(transport, *channel, seq, 5);
        continue;
      }
      const auto memory = transport.allocate(bytes + seq);
      fill(memory.get() + seq, bytes, 5, seq);
      lend_or_put(transport, *channel, seq, {memory.get() + seq});
      wait_for(transport, "the region", [&] { return channel->is_sent(seq); });
    }
    meet(transport);
  });
}

TEST_CASE("regions of long memory are read wherever they lie", "[conformance]") {
  constexpr std::size_t mib = std::size_t{1} << 20, longest = 9 * mib + 40003;
  constexpr std::size_t firsts[] = {0, 2 * mib - 64, 4 * mib, 8 * mib - 4096 - 8, longest - bytes};
  on_ranks(2, [&](Transport& transport) {
    const auto channel = open_one(transport, bytes, 2);
    const auto memory = transport.allocate(longest);
    for (std::uint64_t seq = 0; seq < std::size(firsts); ++seq) {
      if (transport.rank() == 1) {
        take(transport, *channel, seq, 6);
        continue;
      }
      std::byte* const region = memory.get() + firsts[seq];
      fill(region, bytes, 6, seq);
      lend_or_put(transport, *channel, seq, {region});
      wait_for(transport, "the region", [&] { return channel->is_sent(seq); });
    }
    meet(transport);
  });
}

TEST_CASE("short allocations share what they lie in, and each can be lent", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    const auto open_files = [] {
      const std::filesystem::directory_iterator all("/proc/self/fd");
      return std::distance(begin(all), end(all));
    };
    const auto channel = open_one(transport, bytes, 2);
    const auto before = open_files();
    std::vector<std::shared_ptr<std::byte>> kept;
    for (std::uint64_t seq = 0; seq < 200; ++seq) {
      kept.push_back(transport.allocate(bytes + seq));
      claim(std::all_of(kept[seq].get(), kept[seq].get() + bytes + seq, [](std::byte b) { return b == std::byte{0}; }),
            "it is of zeros");
      fill(kept[seq].get() + seq, bytes, 9, seq % 100);
      if (seq % 3 == 1) kept[seq / 2].reset();
    }
    claim(open_files() < before + 20, "few files are open");
    for (std::uint64_t seq = 0; seq < 100; ++seq) {
      if (transport.rank() == 1) {
        take(transport, *channel, seq, 9);
        continue;
      }
      const std::size_t k = seq + 100;  // of the first ones some were freed
      lend_or_put(transport, *channel, seq, {kept[k].get() + k});
      wait_for(transport, "the region", [&] { return channel->is_sent(seq); });
    }
    meet(transport);
  });
}

TEST_CASE("allocated memory is of zeros, aligned, and outlives its transport", "[conformance]") {
  std::vector<std::shared_ptr<std::byte>> kept(5);
  on_ranks(1, [&](Transport& transport) {
    const std::size_t sizes[] = {0, 1, 64, 100000, (std::size_t{5} << 20) + 3};
    for (std::size_t k = 0; k < kept.size(); ++k) {
      kept[k] = transport.allocate(sizes[k]);
      claim(reinterpret_cast<std::uintptr_t>(kept[k].get()) % 64 == 0, "it is aligned");
      claim(std::all_of(kept[k].get(), kept[k].get() + sizes[k], [](std::byte b) { return b == std::byte{0}; }),
            "it is of zeros");
      std::fill_n(kept[k].get(), sizes[k], std::byte{7});
    }
  });
  if (kept[1]) CHECK(*kept[1] == std::byte{7});
}
