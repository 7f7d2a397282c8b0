// The way in which messages that may be placed go: both ends of a pair the same one.
#include "engine/runtime/placed_ways.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "kplan/kplan.hpp"
#include "tests/engine/wrapped_transport.hpp"
#include "transports/shared/regions.hpp"

using namespace kplan;
using transport::Channel;
using transport::ChannelSpec;
using transport::Direction;

namespace {

/// Moves messages of placed ends from their places to those at the other end, by slots.
class PlacingTransport final : public tests::WrappedTransport {
 public:
  using WrappedTransport::WrappedTransport;
  bool places_messages(int) const override { return true; }
  bool lends_memory(int) const override { return false; }
  std::size_t piece_bytes(int) const override { return 0; }
  std::vector<std::unique_ptr<Channel>> open(std::span<const ChannelSpec> specs,
                                             transport::Clock::time_point deadline) override {
    auto out = WrappedTransport::open(specs, deadline);
    for (std::size_t k = 0; k < out.size(); ++k)
      if (specs[k].is_placed) out[k] = std::make_unique<PlacedChannel>(std::move(out[k]), sent_in_place);
    return out;
  }
  int sent_in_place = 0;  ///< messages

 private:
  class PlacedChannel final : public Channel {
   public:
    PlacedChannel(std::unique_ptr<Channel> base, int& sent_in_place)
        : base_(std::move(base)), sent_in_place_(sent_in_place) {}
    void place(std::span<const transport::Blocks> blocks) override { place_.move_to(blocks); }
    std::byte* send_slot(std::uint64_t seq) override { return base_->send_slot(seq); }
    void put(std::uint64_t seq, std::size_t bytes) override { base_->put(seq, bytes); }
    void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
      base_->put_in_place(seq, region, bytes);
    }
    void put_placed(std::uint64_t seq) override {
      std::byte* const slot = base_->send_slot(seq);
      std::size_t bytes = 0;
      for (const iovec& region : place_.regions()) {
        std::memcpy(slot + bytes, region.iov_base, region.iov_len);
        bytes += region.iov_len;
      }
      base_->put(seq, bytes);
      ++sent_in_place_;
    }
    bool is_sent(std::uint64_t seq) override { return base_->is_sent(seq); }
    void expect(std::uint64_t, transport::Lies lies) override { is_to_be_copied_ = lies == transport::Lies::in_place; }
    const std::byte* arrived(std::uint64_t seq) override {
      const std::byte* const message = base_->arrived(seq);
      if (!message || !std::exchange(is_to_be_copied_, false)) return message;
      const std::byte* from = message;
      for (const iovec& region : place_.regions()) {
        std::memcpy(region.iov_base, from, region.iov_len);
        from += region.iov_len;
      }
      return message;
    }
    void release(std::uint64_t seq) override { base_->release(seq); }

   private:
    std::unique_ptr<Channel> base_;
    int& sent_in_place_;
    transport::Place place_;
    bool is_to_be_copied_ = false;
  };
};

}  // namespace

TEST_CASE("a rank above hears of each other way, and of the last one even where it comes late") {
  std::vector<bool> heard;
  transport::run_local(2, [&](const std::shared_ptr<transport::Transport>& transport) {
    const bool is_above = transport->rank() == 1;
    PlacedWays ways;
    (is_above ? ways.below() : ways.above()).push_back({1 - transport->rank()});
    const ChannelSpec spec{.peer = 1 - transport->rank(),
                           .id = 1,
                           .capacity_bytes = PlacedWays::message_bytes,
                           .slots = PlacedWays::slots,
                           .direction = is_above ? Direction::receive : Direction::send};
    const auto deadline = transport::Clock::now() + std::chrono::seconds(60);
    (is_above ? ways.below() : ways.above())[0].channel = std::move(transport->open({&spec, 1}, deadline)[0]);
    const auto meet = [&] { transport->allgather("", deadline); };
    const auto take = [&] { ways.take([&](int, bool goes_in_place) { heard.push_back(goes_in_place); }); };
    if (!is_above)
      for (const bool goes_in_place : {true, true, false, false, true}) ways.tell(goes_in_place);
    meet();
    if (is_above) take();
    meet();
    // More than there are slots for: what there is no room for is told later, if it still holds.
    for (int run = 0; !is_above && run < 7; ++run) ways.tell(run % 2 == 0 ? false : true);
    meet();
    if (is_above) take();
    meet();
    if (!is_above) ways.tell(false);
    meet();
    if (is_above) take();
    meet();
  });
  CHECK(heard == std::vector<bool>{true, false, true, false, true, false, true, false});
}

TEST_CASE("a rank places its messages in the runs in which the rank below does") {
  constexpr std::int64_t n = 512;
  constexpr int runs = 200;  // three trials
  std::vector<std::vector<bool>> is_placed(2, std::vector<bool>(runs));
  std::vector<char> is_right(2);
  transport::run_local(2, [&](const std::shared_ptr<transport::Transport>& transport) {
    const auto placing = std::make_shared<PlacingTransport>(transport);
    Engine engine(placing);
    const int rank = engine.rank();
    Executable x = engine.compile(
        Plan::parse(R"json({"kplan": 1, "name": "both-ways", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "u": {"type": "f64", "shape": ["n", 8, 3]}, "v": {"type": "f64", "shape": ["n", 2, 8]}},
    "statements": [{"communicate": "u[:, :, 1]@0 <<= v[:, 0, :]@1"}, {"communicate": "v[:, 1, :]@1 <<= u[:, :, 0]@0"}]})json"),
        {{"n", n}});
    std::vector<double> u(24 * n), v(16 * n);
    x.bind("u", u);
    x.bind("v", v);
    bool are_all = true;
    for (int run = 0; run < runs; ++run) {
      const auto value = [run](std::size_t k) { return static_cast<double>(k) + run; };
      for (std::size_t k = 0; k < 8 * n; ++k) u[3 * k] = v[k / 8 * 16 + k % 8] = value(k);
      // Each finds that the other takes longer in one way: rank 0 in place, and rank 1 where messages are packed.
      if (run % 64 / 8 == 1 - rank) std::this_thread::sleep_for(std::chrono::microseconds(500));
      const int before = placing->sent_in_place;
      x.run();
      is_placed[static_cast<std::size_t>(rank)][static_cast<std::size_t>(run)] = placing->sent_in_place > before;
      for (std::size_t k = 0; k < 8 * n; ++k)
        are_all = are_all && (rank == 0 ? u[3 * k + 1] : v[k / 8 * 16 + 8 + k % 8]) == value(k);
    }
    is_right[static_cast<std::size_t>(rank)] = are_all;
  });
  CHECK(is_right == std::vector<char>{1, 1});
  CHECK(std::ranges::count(is_placed[0], true) >= 3);
  CHECK(std::ranges::count(is_placed[0], false) >= 3);
  // Each hears of the other's way in the run before, or in the same one.
  for (std::size_t run = 1; run < runs; ++run)
    CHECK((is_placed[1][run] == is_placed[0][run - 1] || is_placed[1][run] == is_placed[0][run]));
}
