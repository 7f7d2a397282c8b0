// Which way messages to far cores are written, as both ends find out.
#include "transports/shared/store_trial.hpp"

#include <catch2/catch.hpp>
#include <chrono>

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
    const RingMemory memory = new_ring(bytes, slots);
    const ChannelSpec out{0, 0, bytes, slots, Direction::send, false},
        in{0, 0, bytes, slots, Direction::receive, false};
    sender = sending_end(memory, out, nullptr, std::make_shared<Distance>(far));
    receiver = receiving_end(memory, in, nullptr);
  }

  /// Sends so many messages, which take so long to write and to read past the caches, and through them; returns how
  /// many went past.
  int run(int messages, std::chrono::nanoseconds write_past, std::chrono::nanoseconds read_past,
          std::chrono::nanoseconds write_through, std::chrono::nanoseconds read_through) {
    int out = 0;
    for (int k = 0; k < messages; ++k, ++seq) {
      REQUIRE(sender->send_slot(seq) != nullptr);
      const bool is_past = sender->goes_past_caches(seq);
      out += is_past ? 1 : 0;
      spend(is_past ? write_past : write_through);
      sender->put(seq, bytes);
      REQUIRE(receiver->arrived(seq) != nullptr);
      spend(is_past ? read_past : read_through);
      REQUIRE(receiver->arrived(seq) != nullptr);  // looking again changes nothing
      receiver->release(seq);
    }
    return out;
  }
};

}  // namespace

TEST_CASE("a trial tries both ways, and its messages are the same at both ends") {
  const StoreTrial trial(10, 3, true);
  int past = 0, through = 0, timed = 0;
  for (std::uint64_t seq = 10; seq < 10 + 4096; ++seq) {
    if (!trial.is_tried(seq)) continue;
    ++(trial.way(seq) == StoreTrial::Way::past_caches ? past : through);
    if (trial.is_timed(seq)) CHECK(trial.sample(seq) == static_cast<std::size_t>(timed++));
    CHECK(trial.is_last(seq) == (seq == 10 + 19));
    CHECK_FALSE(trial.is_over(seq));
  }
  CHECK(past == 10);
  CHECK(through == 10);
  CHECK(timed == 14);
  CHECK(trial.is_first(10));
  CHECK(trial.is_first(10 + 4096));
  CHECK_FALSE(trial.is_over(10 + 22));
  CHECK(trial.is_over(10 + 23));
  CHECK_FALSE(trial.is_tried(9));
  const StoreTrial off(0, 3, false);
  for (std::uint64_t seq = 0; seq < 5000; ++seq) CHECK_FALSE(off.is_tried(seq));
}

TEST_CASE("the way that takes less at both ends together is the faster one, and the second where one cannot tell") {
  using Way = StoreTrial::Way;
  const auto of = [](std::uint64_t past, std::uint64_t through) { return past << 32 | through; };
  CHECK(faster_way(of(5, 9), of(9, 4)) == Way::through_caches);
  CHECK(faster_way(of(5, 9), of(9, 6)) == Way::past_caches);
  CHECK(faster_way(of(5, 9), 0) == Way::through_caches);
  CHECK(faster_way(0, of(5, 9)) == Way::through_caches);
  TrialTimes times;
  CHECK(times.medians() == 0);
  for (std::size_t k = 0; k < 14; ++k) times.add(k, std::chrono::nanoseconds(k < 7 ? 100 + k : 10 + k));
  CHECK(times.medians() == of(103, 20));
  times.clear();
  CHECK(times.medians() == 0);
}

TEST_CASE("messages to far cores go the way that has been faster, which is tried again") {
  using namespace std::chrono_literals;
  Ends ends(0ns);
  // Readers pay more for the first way than writers gain.
  CHECK(ends.run(4096, 1us, 20us, 5us, 5us) < 100);
  // From the next trial on it is the other way round.
  CHECK(ends.run(4096, 1us, 5us, 20us, 1us) > 4000);
}

TEST_CASE("messages to near cores go through the caches, but for those of trials") {
  using namespace std::chrono_literals;
  Ends ends(1s);
  constexpr int past_in_a_trial = Ends::slots + static_cast<int>(StoreTrial::samples);
  CHECK(ends.run(5000, 0us, 0us, 5us, 5us) == 2 * past_in_a_trial);
}
