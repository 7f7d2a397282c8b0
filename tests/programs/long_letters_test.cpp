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

namespace {

/// Long messages of an owner that changes from run to run, to all ranks, in every form that their ends can have.
class Panels {
 public:
  static constexpr std::int64_t panels = 3, rows = 3000, width = 12, length = rows * width;

  explicit Panels(Engine& engine) : rank_(engine.rank()), size_(engine.size()) {
    PlanBuilder builder("panels");
    builder.parameter("panels", Scalar::i64).parameter("rows", Scalar::i64).parameter("width", Scalar::i64);
    builder.parameter("k", Scalar::i64, Scope::uniform, Time::varying);
    builder.buffer("flat", Scalar::i32, {"panels", "rows * width"})
        .buffer("blocks", Scalar::i32, {"rows", "panels * width"});
    builder.buffer("level", Scalar::i32, {"2", "rows * width"}).buffer("straight", Scalar::i32, {"rows * width"});
    builder.buffer("gathered", Scalar::i32, {"rows", "width"}).buffer("spread", Scalar::i32, {"rows * width", "2"});
    builder.buffer("sums", Scalar::i64, {"rows * width"}).buffer("ring", Scalar::i32, {"2", "rows * width"});
    builder.buffer("team", Scalar::i32, {"rows * width"}).group("halves", "rank % 2", "-rank");
    builder.communicate("straight", "straight[:]@r <<= flat[k / size, :]@k % size where r in world");
    builder.communicate("gathered",
                        "gathered[:, :]@r <<= blocks[:, k / size * width : (k / size + 1) * width]@k % size "
                        "where r in world");
    builder.communicate("spread", "spread[:, 1]@r <<= flat[k / size, :]@k % size where r in world");
    builder.communicate("sums", "sums[:]@r << sum << 2 * flat[k / size, :]@k % size where r in world");
    builder.communicate("level", "level[(k + 1) % 2, :]@(k + 1) % size <<= level[k % 2, :]@k % size");
    builder.communicate("ring", "ring[k / size % 2, k % size :]@(rank + 1) % size <<= ring[k % 2, k % size :]@rank");
    builder.communicate("team", "team[:]@r <<= flat[k % panels, :]@(k + 1) % size where r in halves").group("halves");
    executable_.emplace(engine.compile(builder.build(),
                                       {{"panels", panels}, {"rows", rows}, {"width", width}, {"k", std::int64_t{0}}}));
    for (const auto& [name, buffer] : {std::pair{"flat", &flat_},
                                       {"blocks", &blocks_},
                                       {"level", &level_},
                                       {"team", &team_},
                                       {"straight", &straight_},
                                       {"gathered", &gathered_},
                                       {"spread", &spread_},
                                       {"ring", &ring_}})
      executable_->bind(name, *buffer);
    executable_->bind("sums", sums_);
  }

  void run(int run, std::int64_t k) {
    for (std::size_t i = 0; i < flat_.size(); ++i) flat_[i] = value(run, rank_, 0, static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i] = value(run, rank_, 1, static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < level_.size(); ++i) level_[i] = value(run, rank_, 2, static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < ring_.size(); ++i) ring_[i] = value(run, rank_, 3, static_cast<std::int64_t>(i));
    for (auto* buffer : {&straight_, &gathered_, &spread_}) std::ranges::fill(*buffer, -1);
    std::ranges::fill(sums_, run);
    executable_->set("k", k);
    executable_->run();
  }
  bool is_right(int run, std::int64_t k) const {
    const auto owner = static_cast<int>(k % size_);
    const std::int64_t panel = k / size_, next = (k + 1) % 2, now = k % 2;
    // Halves are numbered from their last rank on.
    const int last = size_ - 1 - (size_ - 1 - rank_) % 2, members = last / 2 + 1;
    const int team_owner = last - 2 * static_cast<int>((k + 1) % members);
    for (std::int64_t i = 0; i < length; ++i) {
      const auto n = static_cast<std::size_t>(i);
      const std::int32_t sent = value(run, owner, 0, panel * length + i);
      if (straight_[n] != sent || spread_[2 * n + 1] != sent || spread_[2 * n] != -1) return false;
      if (sums_[n] != run + std::int64_t{2} * sent) return false;
      if (gathered_[n] != value(run, owner, 1, i / width * panels * width + panel * width + i % width)) return false;
      if (team_[n] != value(run, team_owner, 0, k % panels * length + i)) return false;
      const std::int64_t to = panel % 2;  // the place's plane, which may be the value's, too
      if (ring_[static_cast<std::size_t>(to * length + i)] !=
          (i < owner ? value(run, rank_, 3, to * length + i)
                     : value(run, (rank_ + size_ - 1) % size_, 3, now * length + i)))
        return false;
      const bool has_level = rank_ == (k + 1) % size_;
      if (level_[static_cast<std::size_t>(next * length + i)] !=
          value(run, has_level ? owner : rank_, 2, (has_level ? now : next) * length + i))
        return false;
    }
    return true;
  }
  bool is_untouched(int run) const {
    return std::ranges::count(straight_, -1) == length && std::ranges::count(spread_, -1) == 2 * length &&
           std::ranges::count(gathered_, -1) == length && std::ranges::count(sums_, run) == length;
  }

 private:
  static constexpr auto elements = static_cast<std::size_t>(length);
  int rank_, size_;
  std::optional<Executable> executable_;
  std::vector<std::int32_t> flat_ = std::vector<std::int32_t>(panels * elements), blocks_ = flat_;
  std::vector<std::int32_t> level_ = std::vector<std::int32_t>(2 * elements), spread_ = level_, ring_ = level_;
  std::vector<std::int32_t> straight_ = std::vector<std::int32_t>(elements), gathered_ = straight_, team_ = straight_;
  std::vector<std::int64_t> sums_ = std::vector<std::int64_t>(elements);
};

}  // namespace

TEST_CASE("long panels of an owner that changes come whole, and nothing of those that are not there") {
  on_ranks([](Engine& engine) {
    Panels exchange(engine);
    const std::int64_t all = Panels::panels * engine.size();
    for (int run = 0; run < 6 * engine.size() + 6; ++run) {  // until schedules are made of what goes by rows at first
      const std::int64_t k = run * 5 % all;
      exchange.run(run, k);
      claim(exchange.is_right(run, k), "run " + std::to_string(run));
      if (run % 4 != 3) continue;
      claim(fails([&] { exchange.run(run, all + 1); }), "there are not so many panels");
      claim(exchange.is_untouched(run), "nothing is written");
    }
  });
}
