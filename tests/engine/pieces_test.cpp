// Long messages: in pieces, whole, and what is left of one when its receiver takes its time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <thread>

#include "engine/bind.hpp"
#include "engine/runtime/program.hpp"
#include "tests/engine/two_ranks.hpp"
#include "tests/engine/wrapped_transport.hpp"

using namespace kplan;
using tests::holds_on_both;

namespace {

constexpr std::int64_t count = 300000;

/// Rank 0's `b` to rank 1's `a`, in an order that takes kernels at both ends.
Plan one_way(const std::string& name) {
  return Plan::parse(R"json({"kplan": 1, "name": ")json" + name +
                     R"json(", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "f64", "shape": ["2 * n"]}, "b": {"type": "f32", "shape": ["n", 3]}},
    "statements": [{"communicate": "a[2 * k + 1]@1 << sum << b[k, 1] * 2@0 where k in range(n)"}]})json");
}

struct Arrays {
  std::vector<double> a = std::vector<double>(2 * count);
  std::vector<float> b = std::vector<float>(3 * count);
  Arrays() { std::iota(b.begin(), b.end(), 1.f); }
  /// Whether `a` has had so many runs.
  bool is_right(int runs) const {
    for (std::size_t k = 0; k < a.size(); ++k)
      if (a[k] != (k % 2 == 0 ? 0 : runs * 2.0 * b[k / 2 * 3 + 1])) return false;
    return true;
  }
};

Executable compiled(Engine& engine, const char* name, Arrays& arrays) {
  Executable out = engine.compile(one_way(name), {{"n", count}});
  out.bind("a", arrays.a);
  out.bind("b", arrays.b);
  return out;
}

/// Counts what this rank does with channels for so many bytes that it sends through.
class CountingTransport final : public tests::WrappedTransport {
 public:
  CountingTransport(std::shared_ptr<Transport> base, std::size_t bytes)
      : WrappedTransport(std::move(base)), bytes_(bytes) {}

  std::vector<std::unique_ptr<transport::Channel>> open(std::span<const transport::ChannelSpec> specs,
                                                        transport::Clock::time_point deadline) override {
    auto out = WrappedTransport::open(specs, deadline);
    for (std::size_t k = 0; k < out.size(); ++k)
      if (specs[k].direction == transport::Direction::send && specs[k].capacity_bytes == bytes_)
        out[k] = std::make_unique<CountingChannel>(std::move(out[k]), counts);
    return out;
  }

  struct Counts {
    int looks = 0, sent = 0;
  };
  Counts counts;

 private:
  class CountingChannel final : public transport::Channel {
   public:
    CountingChannel(std::unique_ptr<Channel> base, Counts& counts) : base_(std::move(base)), counts_(counts) {}
    std::byte* send_slot(std::uint64_t seq) override {
      ++counts_.looks;
      return base_->send_slot(seq);
    }
    void put(std::uint64_t seq, std::size_t bytes) override {
      ++counts_.sent;
      base_->put(seq, bytes);
    }
    void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
      base_->put_in_place(seq, region, bytes);
    }
    bool is_sent(std::uint64_t seq) override { return base_->is_sent(seq); }
    const std::byte* arrived(std::uint64_t seq) override { return base_->arrived(seq); }
    void release(std::uint64_t seq) override { base_->release(seq); }

   private:
    std::unique_ptr<Channel> base_;
    Counts& counts_;
  };

  std::size_t bytes_;
};

/// When each rank sends its message of the first statement in pieces; nothing where it has none that could go so. There
/// are a `u` of n rows, and `v` and `w` of three.
std::vector<std::optional<InPieces>> when_in_pieces(int ranks, std::int64_t n, const std::string& statement,
                                                    const std::string& second = "", bool have_common_phases = false) {
  const std::string more = second.empty() ? "" : R"json(, {"communicate": ")json" + second + R"json("})json";
  const auto plan = std::make_shared<const Plan>(Plan::parse(
      R"json({"kplan": 1, "name": "when", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "u": {"type": "f64", "shape": ["n", 3]}, "v": {"type": "f64", "shape": [3, "n"]}, "w": {"type": "f64", "shape": [3, "n"]}},
    "statements": [{"communicate": ")json" +
      statement + R"json("})json" + more + "]}"));
  std::vector<std::optional<InPieces>> out(static_cast<std::size_t>(ranks));
  transport::run_local(ranks, [&](const std::shared_ptr<transport::Transport>& transport) {
    const int rank = transport->rank();
    BoundPlan bound = bind_values({plan, &plan->model()}, {{"n", n}}, rank, ranks).bound;
    Schedule schedule = build_schedule(bound);
    schedule.has_common_phases = have_common_phases;
    Program program = make_program(std::move(bound), std::move(schedule), {}, jit::Wait::not_at_all);
    open_channels(program, {}, *transport, transport::Clock::now() + std::chrono::minutes(1));
    for (const OutgoingMessage& m : program.statements[0].outgoing)
      if (m.pieces) out[static_cast<std::size_t>(rank)] = m.pieces->when;
  });
  return out;
}

using When = std::vector<std::optional<InPieces>>;

}  // namespace

TEST_CASE("what goes one way goes in pieces, scattered or not, from two pieces on") {
  constexpr std::int64_t of_two_pieces = 8192;
  for (const char* statement : {"u[:, 1]@1 <<= u[:, 0]@0", "w[::2, 1:]@1 <<= v[::2, 1:]@0"})
    CHECK(when_in_pieces(2, of_two_pieces + 3, statement) == When{InPieces::always, std::nullopt});
  CHECK(when_in_pieces(2, of_two_pieces - 3, "u[:, 1]@1 <<= u[:, 0]@0") == When{std::nullopt, std::nullopt});
}

TEST_CASE("what a rank sends while as much comes goes in pieces from 2 MiB on, before that as trials say") {
  constexpr std::int64_t of_two_mib = 262144;
  for (const int ranks : {2, 3}) {
    const auto all = [&](InPieces when) { return When(static_cast<std::size_t>(ranks), when); };
    const std::string to_the_next = "u[:, 1]@(rank + 1) % size <<= u[:, 0]@rank",
                      rows = "w[::2, 1:]@(rank + 1) % size <<= v[::2, 1:]@rank";
    CHECK(when_in_pieces(ranks, of_two_mib - 1, to_the_next) == all(InPieces::tried));
    CHECK(when_in_pieces(ranks, of_two_mib, to_the_next) == all(InPieces::always));
    CHECK(when_in_pieces(ranks, 16384, rows) == all(InPieces::tried));
  }
}

TEST_CASE("what comes back only after it was sent goes one way") {
  constexpr std::int64_t n = 18000;
  const auto of_first_rank = [&](const char* statement, const char* second, bool have_common_phases) {
    return when_in_pieces(2, n, statement, second, have_common_phases)[0];
  };
  // Rank 0 could receive while it sends, and rank 1 sends what it has received.
  CHECK(of_first_rank("v[::2, 1:]@1 <<= v[::2, 1:]@0", "w[::2, 1:]@0 <<= v[::2, 1:]@1", false) == InPieces::always);
  // Nothing that comes waits for what goes, as the buffers say or the elements.
  CHECK(of_first_rank("v[::2, 1:]@1 <<= v[::2, 1:]@0", "w[::2, 1:]@0 <<= w[::2, 1:]@1", false) == InPieces::tried);
  CHECK(of_first_rank("v[::2, :9000]@1 <<= v[::2, 9000:]@0", "v[::2, :9000]@0 <<= v[::2, 9000:]@1", true) ==
        InPieces::tried);
}

TEST_CASE("long messages are right whichever way each run sends them") {
  CHECK(holds_on_both([](Engine& engine) {
    Arrays arrays;
    Executable x = compiled(engine, "x", arrays);
    tests::run_either_way(x, engine.rank(), 12);
    return engine.rank() == 0 || arrays.is_right(12);
  }));
}

TEST_CASE("messages that go whole and in pieces by turns, as runs try, are right") {
  constexpr std::size_t n = 40000;
  CHECK(holds_on_both([](Engine& engine) {
    Executable x = engine.compile(
        Plan::parse(R"json({"kplan": 1, "name": "shift", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "u": {"type": "f64", "shape": ["n", 3]}},
    "statements": [{"communicate": "u[k, 1]@(rank + 1) % size << sum << u[k, 0]@rank where k in range(n)"}]})json"),
        {{"n", static_cast<std::int64_t>(n)}});
    std::vector<double> u(3 * n);
    x.bind("u", u);
    constexpr int runs = 100;  // two trials, and what lies between
    double expected = 0;
    for (int run = 0; run < runs; ++run) {
      for (std::size_t k = 0; k < n; ++k) u[3 * k] = static_cast<double>(k) + run + 1000 * engine.rank();
      expected += run + 1000 * (1 - engine.rank());
      x.run();
    }
    for (std::size_t k = 0; k < n; ++k)
      if (u[3 * k + 1] != runs * static_cast<double>(k) + expected || u[3 * k + 2] != 0) return false;
    return true;
  }));
}

TEST_CASE("a rank sends its messages the way in which those of the rank below it have come") {
  constexpr std::int64_t n = 40000;
  constexpr int runs = 150, ranks = 3;  // two trials of rank 0, and more
  struct Pieces {
    std::vector<bool> begun, sent;  ///< by run; a receiver that is late gets the whole all the same
  };
  std::vector<Pieces> of(ranks);
  transport::run_local(ranks, [&](const std::shared_ptr<transport::Transport>& transport) {
    const std::size_t piece = PieceStream::head_bytes + transport->piece_bytes(transport->rank() == 0 ? 1 : 0);
    const auto counting = std::make_shared<CountingTransport>(transport, piece);
    Engine engine(counting);
    Executable x = engine.compile(
        Plan::parse(R"json({"kplan": 1, "name": "shift", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "u": {"type": "f64", "shape": ["n", 3]}},
    "statements": [{"communicate": "u[:, 1]@(rank + 1) % size <<= u[:, 0]@rank"}]})json"),
        {{"n", n}});
    std::vector<double> u(3 * n);
    x.bind("u", u);
    Pieces& mine = of[static_cast<std::size_t>(engine.rank())];
    for (int run = 0; run < runs; ++run) {
      counting->counts = {};
      x.run();
      mine.begun.push_back(counting->counts.looks > 0);
      mine.sent.push_back(counting->counts.sent > 0);
    }
  });
  // Given up at the fourth run at the earliest.
  CHECK(std::ranges::count(of[0].begun, true) >= 4);
  CHECK(std::ranges::count(of[0].begun, false) >= 4);
  for (std::size_t rank = 1; rank < ranks; ++rank)
    CHECK(std::equal(of[rank].begun.begin() + 1, of[rank].begun.end(), of[rank - 1].sent.begin()));
}

TEST_CASE("a receiver that waits for something else first does not hold up who sends to it") {
  CHECK(holds_on_both([](Engine& engine) {
    Arrays of_x, of_y;
    Executable x = compiled(engine, "x", of_x), y = compiled(engine, "y", of_y);
    for (int k = 0; k < 5; ++k) {
      if (engine.rank() == 0) {
        x.run();
        y.run();
      } else {
        x.start();
        y.run();
        x.wait();
      }
    }
    return engine.rank() == 0 || (of_x.is_right(5) && of_y.is_right(5));
  }));
}

TEST_CASE("messages whose receivers transpose them are right") {
  constexpr std::size_t n = 500;
  CHECK(holds_on_both([](Engine& engine) {
    Executable x = engine.compile(
        Plan::parse(R"json({"kplan": 1, "name": "transpose", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "f64", "shape": ["n", "n"]}, "b": {"type": "f64", "shape": ["n", "n"]}},
    "statements": [{"communicate": "a[k, :]@(rank + 1) % size <<= b[:, k]@rank where k in range(n)"},
                   {"communicate": "b[:, k]@(rank + 1) % size <<= a[k, :]@rank where k in range(n)"}]})json"),
        {{"n", static_cast<std::int64_t>(n)}});
    std::vector<double> a(n * n), b(n * n);
    x.bind("a", a);
    x.bind("b", b);
    for (std::size_t k = 0; k < b.size(); ++k)
      b[k] = static_cast<double>(2 * k + static_cast<std::size_t>(engine.rank()));
    const std::vector<double> first = b;
    for (int run = 0; run < 4; ++run) {
      if (run % 2 == 0) {
        x.run();
      } else {
        x.start();
        x.wait();
      }
      for (std::size_t k = 0; k < b.size(); ++k)
        if (a[k / n + k % n * n] != first[k] + 1 - 2 * engine.rank() || b[k] != first[k]) return false;
    }
    return true;
  }));
}

TEST_CASE("several long messages between two ranks are right, in pieces and whole, whoever is late") {
  CHECK(holds_on_both([](Engine& engine) {
    constexpr std::int64_t n = 200000;
    Executable x = engine.compile(
        Plan::parse(R"json({"kplan": 1, "name": "several", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "f64", "shape": [3, "n"]}, "b": {"type": "f64", "shape": [3, "n"]}, "c": {"type": "f64", "shape": ["n"]}},
    "statements": [{"communicate": "a[0, k]@1 - i <<= b[0, k]@i where i in range(2), k in range(n)"},
                   {"communicate": "a[1, k]@1 - i << sum << b[1, k]@i where i in range(2), k in range(n)"},
                   {"communicate": "a[2, k]@1 <<= b[2, k]@0 where k in range(n / 8)"},
                   {"communicate": "c[k]@1 - i <<= a[0, k]@i where i in range(2), k in range(n)"}]})json"),
        {{"n", n}});
    std::vector<double> a(3 * n), b(3 * n), c(n);
    x.bind("a", a);
    x.bind("b", b);
    x.bind("c", c);
    const double mine = 1 + engine.rank(), peers = 2 - engine.rank();
    for (int run = 1; run <= 20; ++run) {
      for (std::int64_t k = 0; k < 3 * n; ++k) b[static_cast<std::size_t>(k)] = mine * static_cast<double>(k + run);
      if (run % 3 == engine.rank()) {
        x.start();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        x.wait();
      } else {
        x.run();
      }
      double sum = 0;
      for (int r = 1; r <= run; ++r) sum += peers * static_cast<double>(n + 7 + r);
      if (a[7] != peers * (7 + run) || a[n + 7] != sum || c[n - 1] != mine * static_cast<double>(n - 1 + run))
        return false;
      if (engine.rank() == 1 && a[2 * n + n / 8 - 1] != peers * static_cast<double>(2 * n + n / 8 - 1 + run))
        return false;
    }
    return true;
  }));
}
