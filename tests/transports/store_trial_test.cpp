// Which way messages to far cores are written, as both ends find out.
#include "transports/shared/store_trial.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>

#include "transports/shared/ring.hpp"

using namespace kplan::transport;

namespace {

void spend(std::chrono::nanoseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) continue;
}

/// Both ends of a ring, in one thread.
struct Ends {
  static constexpr std::size_t bytes = 1000;
  static constexpr int slots = 4;
  std::unique_ptr<Channel> sender, receiver;
  std::uint64_t seq = 0;

  explicit Ends(std::chrono::nanoseconds far) {
    const ChannelSpec out{0, 0, bytes, slots, Direction::send, false},
        in{0, 0, bytes, slots, Direction::receive, false};
    const RingMemory memory = new_ring(out);
    sender = sending_end(memory, out, nullptr, std::make_shared<Distance>(far));
    receiver = receiving_end({memory, {}}, in, nullptr, std::make_shared<Distance>(far));
  }

  /// What one way costs.
  struct Cost {
    std::chrono::nanoseconds write, read;
  };

  /// Sends so many messages, at that cost by way (in the order of StoreTrial::ways); returns how many went each.
  std::map<Stores, int> run(int messages, const std::array<Cost, 3>& costs) {
    std::map<Stores, int> out;
    for (int k = 0; k < messages; ++k, ++seq) {
      REQUIRE(sender->send_slot(seq) != nullptr);
      const Stores way = sender->best_stores(seq);
      ++out[way];
      const Cost& cost =
          costs[static_cast<std::size_t>(std::ranges::find(StoreTrial::ways, way) - StoreTrial::ways.begin())];
      spend(cost.write);
      sender->put(seq, bytes);
      REQUIRE(receiver->arrived(seq) != nullptr);
      spend(cost.read);
      REQUIRE(receiver->arrived(seq) != nullptr);  // looking again changes nothing
      receiver->release(seq);
    }
    return out;
  }
};

}  // namespace

TEST_CASE("a trial tries all ways, and its messages are the same at both ends") {
  const StoreTrial trial(10, 3, true);
  std::map<Stores, int> tried;
  int timed = 0;
  for (std::uint64_t seq = 10; seq < 10 + 512; ++seq) {
    if (!trial.is_tried(seq)) continue;
    ++tried[trial.way(seq)];
    if (trial.is_timed(seq)) CHECK(trial.sample(seq) == static_cast<std::size_t>(timed++));
    CHECK(trial.is_last(seq) == (seq == 10 + 29));
    CHECK_FALSE(trial.is_over(seq));
  }
  for (const Stores way : StoreTrial::ways) CHECK(tried[way] == 10);
  CHECK(timed == 21);
  CHECK(trial.is_first(10));
  CHECK(trial.is_first(10 + 512));
  CHECK_FALSE(trial.is_over(10 + 32));
  CHECK(trial.is_over(10 + 33));
  CHECK_FALSE(trial.is_tried(9));
  const StoreTrial off(0, 3, false);
  for (std::uint64_t seq = 0; seq < 5000; ++seq) CHECK_FALSE(off.is_tried(seq));
}

TEST_CASE("the way that takes least at both ends together is the fastest, and the ordinary one where one cannot tell") {
  const auto of = [](int non_temporal, int whole_lines, int cached) {
    return TrialMedians({std::chrono::nanoseconds(non_temporal), std::chrono::nanoseconds(whole_lines),
                         std::chrono::nanoseconds(cached)});
  };
  CHECK(TrialMedians::fastest(of(50, 90, 90), of(90, 90, 40)) == Stores::cached);
  CHECK(TrialMedians::fastest(of(50, 90, 90), of(90, 90, 60)) == Stores::non_temporal);
  CHECK(TrialMedians::fastest(of(50, 40, 90), of(90, 90, 60)) == Stores::whole_lines);
  CHECK(TrialMedians::fastest(of(50, 90, 90), of(90, 90, 58)) == Stores::cached);  // by less than a sixteenth
  CHECK(TrialMedians::fastest(of(50, 90, 90), TrialMedians()) == Stores::cached);
  CHECK(TrialMedians::fastest(TrialMedians(), of(50, 90, 90)) == Stores::cached);
  CHECK(TrialMedians::fastest(of(1, 1 << 30, 1 << 30), of(1, 1 << 30, 1 << 30)) == Stores::non_temporal);
  TrialTimes times;
  CHECK(times.medians().word() == 0);
  for (int k = 0; k < 21; ++k)
    times.add(static_cast<std::size_t>(k), std::chrono::nanoseconds(k / 7 * 1000 + k % 7 * 8));
  CHECK(times.medians().word() == of(24, 1024, 2024).word());
  times.clear();
  CHECK(times.medians().word() == 0);
}

TEST_CASE("messages to far cores go the way that has been fastest, which is tried again") {
  using namespace std::chrono_literals;
  Ends ends(0ns);
  // Readers pay more for the first way than writers gain, and the second costs both.
  CHECK(ends.run(4096, {{{1us, 20us}, {9us, 9us}, {5us, 5us}}})[Stores::cached] > 4000);
  // From the next trials on it is otherwise.
  CHECK(ends.run(4096, {{{1us, 5us}, {9us, 9us}, {20us, 1us}}})[Stores::non_temporal] > 4000);
  CHECK(ends.run(4096, {{{9us, 9us}, {5us, 5us}, {20us, 1us}}})[Stores::whole_lines] > 4000);
}

TEST_CASE("messages to far cores are tried once in some thousands, and those to near ones go through the caches") {
  using namespace std::chrono_literals;
  constexpr std::array<Ends::Cost, 3> costs{{{0us, 0us}, {1us, 1us}, {5us, 5us}}};
  constexpr int in_a_trial = Ends::slots + static_cast<int>(StoreTrial::samples);
  auto went = Ends(0ns).run(5000, costs);
  CHECK(went[Stores::whole_lines] == 2 * in_a_trial);
  CHECK(went[Stores::cached] == 2 * in_a_trial);
  went = Ends(1s).run(5000, costs);
  CHECK(went[Stores::cached] == 5000);
}
