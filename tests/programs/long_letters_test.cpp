// Slices of lengths that change at every run and only their senders know, from a few bytes to more than any slot holds.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <thread>

#include "tests/programs/on_ranks.hpp"

using namespace kplan;
using namespace kplan::programs;

namespace {

constexpr std::int64_t most = 150000;

/// What each rank sends each other in some run.
std::int64_t count(int run, int from, int to) {
  const std::int64_t kinds[] = {0, 7, 9000, 70001, most};
  return kinds[(run + from * 3 + to) % 5];
}

std::int32_t value(int run, int from, int to, std::int64_t k) {
  return static_cast<std::int32_t>(run * 7919 + from * 104729 + to * 1299709 + k);
}

/// An alltoallv of two buffers at a time, of which the second goes the other way round.
class Exchange {
 public:
  explicit Exchange(Engine& engine) : engine_(engine), size_(static_cast<std::size_t>(engine.size())) {
    PlanBuilder builder("long-letters");
    builder.parameter("most", Scalar::i64);
    for (const char* name : {"keys", "mine", "others", "back"}) builder.buffer(name, Scalar::i32, {"size", "most"});
    for (const char* name : {"counts", "places"})
      builder.index_buffer(name, Scalar::i32, {"size"}, Scope::private_, Time::varying);
    const std::string where = " where s in world, d in world, n = counts[d], p = places[d]";
    builder.communicate("there", "mine[s, p : p + n]@d <<= keys[d, 0:n]@s" + where);
    builder.communicate("again", "back[s, p : p + n]@d <<= others[d, 0:n]@s" + where);
    executable_.emplace(engine.compile(builder.build(), {{"most", most}}));
    for (auto* buffer : {&keys_, &mine_, &others_, &back_}) buffer->resize(size_ * most);
    executable_->bind("keys", keys_);
    executable_->bind("mine", mine_);
    executable_->bind("others", others_);
    executable_->bind("back", back_);
    executable_->bind("counts", counts_);
    executable_->bind("places", places_);
  }

  void prepare(int run) {
    run_ = run;
    for (std::size_t d = 0; d < size_; ++d) {
      counts_[d] = static_cast<std::int32_t>(count(run, engine_.rank(), static_cast<int>(d)));
      places_[d] = counts_[d] < most ? 1 : 0;
      for (std::int64_t k = 0; k < counts_[d]; ++k) {
        keys_[d * most + static_cast<std::size_t>(k)] = value(run, engine_.rank(), static_cast<int>(d), k);
        others_[d * most + static_cast<std::size_t>(k)] = value(run + 1, engine_.rank(), static_cast<int>(d), k);
      }
    }
    std::ranges::fill(mine_, -1);
    std::ranges::fill(back_, -1);
  }
  void run(bool is_split) {
    if (is_split) run_around([] {});
    else executable_->run();
  }
  /// Does something else between start and wait.
  void run_around(const std::function<void()>& other) {
    executable_->start();
    other();
    executable_->wait();
  }
  std::vector<std::int32_t>& counts() { return counts_; }
  std::vector<std::int32_t>& places() { return places_; }
  bool is_right() const { return is_right(mine_, run_) && is_right(back_, run_ + 1); }
  bool is_untouched() const {
    return std::ranges::count(mine_, -1) == std::ssize(mine_) && std::ranges::count(back_, -1) == std::ssize(back_);
  }

 private:
  bool is_right(const std::vector<std::int32_t>& came, int seed) const {
    for (std::size_t s = 0; s < size_; ++s) {
      const auto from = static_cast<int>(s);
      const std::int64_t n = count(run_, from, engine_.rank()), place = n < most ? 1 : 0;
      for (std::int64_t k = 0; k < most; ++k) {
        const bool is_within = k >= place && k < place + n;
        const std::int32_t expected = is_within ? value(seed, from, engine_.rank(), k - place) : -1;
        if (came[s * most + static_cast<std::size_t>(k)] != expected) return false;
      }
    }
    return true;
  }

  Engine& engine_;
  std::size_t size_;
  int run_ = 0;
  std::optional<Executable> executable_;
  std::vector<std::int32_t> keys_, mine_, others_, back_;
  std::vector<std::int32_t> counts_ = std::vector<std::int32_t>(size_), places_ = counts_;
};

bool fails(const std::function<void()>& run) {
  try {
    run();
  } catch (const PlanError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("slices of lengths that only senders know come whole, whoever is late") {
  on_ranks([](Engine& engine) {
    Exchange exchange(engine);
    for (int run = 0; run < 10; ++run) {
      exchange.prepare(run);
      if (run % 6 == 5 && run % engine.size() == engine.rank())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      exchange.run(/*is_split=*/(run + engine.rank()) % 3 == 0);
      claim(exchange.is_right(), "run " + std::to_string(run));
    }
  });
}

TEST_CASE("a rank that has started long slices may take part in something else before it waits") {
  on_ranks([](Engine& engine) {
    Exchange exchange(engine);
    for (int run = 0; run < 3; ++run) {
      exchange.prepare(run);
      // Rank 0 compiles between start and wait, the others when they have ended the run.
      if (engine.rank() != 0) exchange.run(false);
      const auto compile = [&] {
        PlanBuilder builder("other-" + std::to_string(run));
        builder.buffer("a", Scalar::i32, {"size"}).communicate("s", "a[0]@0 <<= a[0]@size - 1");
        (void)engine.compile(builder.build());
      };
      if (engine.rank() == 0) exchange.run_around(compile);
      else compile();
      claim(exchange.is_right(), "run " + std::to_string(run));
    }
  });
}

TEST_CASE("a mistake in one rank's slices leaves long ones of others unwritten, and the next run is right") {
  on_ranks([](Engine& engine) {
    Exchange exchange(engine);
    for (int run = 0; run < 3; ++run) {
      exchange.prepare(run);
      const int culprit = run % engine.size();
      if (engine.rank() == culprit) exchange.counts()[0] = most + 1;  // beyond what it has
      claim(fails([&] { exchange.run(run % 2 == 0); }), "all ranks hear of it");
      claim(exchange.is_untouched(), "nothing is written");
      // Only rank 0 finds that it has no such place.
      exchange.prepare(run);
      const bool is_beyond = engine.rank() == culprit && exchange.counts()[0] > 0;
      if (is_beyond) exchange.places()[0] = most;
      const bool has_failed = fails([&] { exchange.run(run % 2 == 0); });
      claim(has_failed == (engine.rank() == 0 && count(run, culprit, 0) > 0), "rank 0 finds it");
      claim(has_failed ? exchange.is_untouched() : exchange.is_right(), "what came is all there, or nothing");
      exchange.prepare(run);
      exchange.run(false);
      claim(exchange.is_right(), "the next run is right");
    }
  });
}
