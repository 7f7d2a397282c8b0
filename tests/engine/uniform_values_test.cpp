// Uniform parameters that are set to different values on different ranks.
#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/engine/on_ranks.hpp"
#include "tests/engine/wrapped_transport.hpp"
#include "tests/variable.hpp"

using namespace kplan;
using kplan::tests::claim;
using kplan::tests::error_of;
using kplan::tests::on_ranks;

namespace {

/// Counts the channels that are opened.
class CountingTransport final : public tests::WrappedTransport {
 public:
  using WrappedTransport::WrappedTransport;
  std::vector<std::unique_ptr<transport::Channel>> open(std::span<const transport::ChannelSpec> specs,
                                                        transport::Clock::time_point deadline) override {
    opened += static_cast<int>(specs.size());
    return WrappedTransport::open(specs, deadline);
  }
  int opened = 0;
};

/// What short messages with four slots bring, as those of uniform values do, is seen late.
class LateTransport final : public tests::WrappedTransport {
 public:
  using WrappedTransport::WrappedTransport;
  std::vector<std::unique_ptr<transport::Channel>> open(std::span<const transport::ChannelSpec> specs,
                                                        transport::Clock::time_point deadline) override {
    auto out = WrappedTransport::open(specs, deadline);
    for (std::size_t k = 0; k < specs.size(); ++k)
      if (specs[k].slots == 4 && specs[k].capacity_bytes < 1000) {
        out[k] = std::make_unique<LateChannel>(std::move(out[k]));
        ++late;
      }
    return out;
  }
  int late = 0;  ///< channels

 private:
  class LateChannel final : public transport::Channel {
   public:
    explicit LateChannel(std::unique_ptr<Channel> base) : base_(std::move(base)) {}
    std::byte* send_slot(std::uint64_t seq) override { return base_->send_slot(seq); }
    void put(std::uint64_t seq, std::size_t bytes) override { base_->put(seq, bytes); }
    void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
      base_->put_in_place(seq, region, bytes);
    }
    bool is_sent(std::uint64_t seq) override { return base_->is_sent(seq); }
    const std::byte* arrived(std::uint64_t seq) override { return ++looks_ % 50 == 0 ? base_->arrived(seq) : nullptr; }
    void release(std::uint64_t seq) override { base_->release(seq); }

   private:
    std::unique_ptr<Channel> base_;
    int looks_ = 0;
  };
};

/// Runs until one of them throws: what it says; nothing where `is_over` comes before.
std::string error_of_runs(Executable& e, const auto& is_over) {
  std::string out;
  while (out.empty() && !is_over()) {
    out = error_of([&] { e.run(); });
    std::this_thread::yield();
  }
  return out;
}

/// Sets n alike for twenty runs, and otherwise on rank 1 for one more: what that says.
std::string error_of_run_20(Executable& e, int rank) {
  for (int run = 0; run < 20; ++run) {
    e.set("n", run % 8);
    e.run();
  }
  e.set("n", rank == 1 ? 5 : 6);
  return error_of([&] { e.run(); });
}

bool names_rank_1_in_run_20(const std::string& message) {
  return message.find(" to 5 on rank 1") != std::string::npos && message.find(", for run 20;") != std::string::npos;
}

}  // namespace

TEST_CASE("uniform values that differ between ranks at a run are an error that names two ranks") {
  const Plan plan = Plan::parse(R"({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": [8]}}, "statements": [{"name": "s", "communicate": "a[0:n]@(rank + 1) % size <<= a[0:n]@rank"}]})");
  on_ranks(2, [&](Engine& engine) {
    Executable e = engine.compile(plan, {{"n", 2}});
    std::vector<std::int64_t> a(8);
    e.bind("a", a);
    e.run();
    e.set("n", 3 + engine.rank());
    const std::string message = error_of([&] { e.run(); });
    claim(message.find("uniform parameter `n` was set to 3 on rank 0 and to 4 on rank 1, for run 1;") !=
              std::string::npos,
          message);
  });
}

TEST_CASE("first values of uniform varying parameters are compared when a plan is compiled") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"factor": {"type": "f64", "time": "varying"}},
    "buffers": {"a": {"type": "f64", "shape": [1]}}, "statements": [{"communicate": "a[0]@(rank + 1) % size <<= factor@rank"}]})");
  on_ranks(3, [&](Engine& engine) {
    const std::string message = error_of([&] { engine.compile(plan, {{"factor", engine.rank() == 2 ? 0.5 : 2.0}}); });
    claim(message.find("uniform parameter `factor` differs between ranks: 2 on rank 0, 0.5 on rank 2") !=
              std::string::npos,
          message);
  });
}

TEST_CASE("ranks compare uniform values whether or not their varying statements have letters for each other") {
  // Messages around the ring, away from it, none at all; a push and a pull whose rows are found anew. With fixed
  // patterns: values that messages carry both ways, between some ranks, with longer ones, in a later phase too, and one
  // way only.
  const std::string statements[] = {
      "a[0:n]@(rank + 1) % size <<= b[0:n]@rank",
      "a[n]@(rank + 1) % size <<= b[0]@rank, b[n]@(rank + size - 1) % size <<= b[1]@rank",
      "a[n]@0 <<= b[n]@1, b[n]@1 <<= a[n]@0, c[n]@size - 1 <<= n * c[0]@1",
      "c[:]@(rank + 1) % size <<= n * c[:]@rank, a[0]@(rank + size - 1) % size <<= n@rank",
      "a[0]@(rank + 1) % size <<= n@rank\"}, {\"communicate\": \"b[0]@rank <<= a[0] * n@rank",
      "c[:]@0 <<= n * c[:]@1",
      "a[0:n]@0 <<= b[0:n]@size / 2 where rank < n",
      "a[n]@0 <<= b[0]@rank where false",
      "a[i % 8]@to[i] <<= b[i]@rank where i in range(n)",
      "a[i]@rank <<= b[i]@to[i] where i in range(n)"};
  // Values that are new, that were met, and whose patterns are settled by then.
  const std::vector<std::int64_t> values{2, 2, 2, 3, 3, 3};
  for (const std::string& statement : statements) {
    const Plan plan = Plan::parse(
        R"({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": [8]}, "b": {"type": "i64", "shape": [8]},
                "c": {"type": "f64", "shape": [5000]},
                "to": {"type": "i64", "shape": [8], "scope": "private", "time": "varying"}},
    "statements": [{"name": "s", "communicate": ")" +
        statement + R"("}]})");
    const bool is_varying =
        statement.find("0:n") != std::string::npos || statement.find("range(n)") != std::string::npos;
    for (const int ranks : {2, 3, 5})
      for (const std::size_t wrong_run : {0, 1, 2, 3, 6}) {
        std::atomic<int> told{0};
        const int told_at_last = std::min(ranks, 3);
        on_ranks(ranks, [&](Engine& engine) {
          Executable e = engine.compile(plan, {{"n", 2}});
          std::vector<std::int64_t> a(8), b(8, engine.rank()), to(8, (engine.rank() + 1) % engine.size());
          e.bind("a", a);
          e.bind("b", b);
          e.bind("to", to);
          std::vector<double> c(5000);
          e.bind("c", c);
          for (std::size_t run = 0; run < wrong_run; ++run) {
            e.set("n", values[run]);
            e.run();
          }
          e.set("n", engine.rank() == 1 ? 3 : 2);
          // Rank 1 and its neighbours, in this run or in one that follows; others may find that these have ended.
          const std::string message = error_of_runs(e, [&] { return told == told_at_last; });
          if (engine.rank() > 2) return;
          ++told;
          // Who is not sent anything by rank 1 may be left alone before.
          const bool is_left = !is_varying && engine.rank() == 0 && message.find("has ended") != std::string::npos;
          claim(is_left || (message.find("uniform parameter `n` was set to ") != std::string::npos &&
                            message.find(fmt::format("for run {}", wrong_run)) != std::string::npos),
                statement + ": " + message);
          claim(error_of([&] { e.run(); }).find("KP-T011") != std::string::npos, "no run follows");
        });
      }
  }
}

TEST_CASE("a uniform parameter that only values use is compared where it is set") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"factor": {"type": "f64", "time": "varying", "default": 1}},
    "buffers": {"a": {"type": "f64", "shape": [1]}}, "statements": [{"communicate": "a[0]@(rank + 1) % size <<= factor@rank"}]})");
  for (const int ranks : {2, 3, 5})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(plan);
      std::vector<double> a(1);
      e.bind("a", a);
      for (int run = 0; run < 20; ++run) {
        if (run % 3 != 0) e.set("factor", 0.5 * run);
        e.run();
        claim(a[0] == (run == 0 ? 1 : 0.5 * (run % 3 == 0 ? run - 1 : run)), "the factor is wrong");
      }
      e.set("factor", engine.rank() == 1 ? 7.0 : 8.0);
      const auto is_told = [](const std::string& message) {
        return message.find("uniform parameter `factor` was set to ") != std::string::npos;
      };
      // In this run those whose message was made with another value; who has sent one is told later, or left alone.
      const std::string message = error_of([&] { e.run(); });
      if (engine.rank() == 1 || engine.rank() == 2 % ranks) claim(is_told(message), "told in the run: " + message);
      if (engine.rank() == 0 && !is_told(message)) {
        const std::string later = error_of_runs(e, [] { return false; });
        claim(is_told(later) || (ranks > 2 && later.find("has ended") != std::string::npos), "told later: " + later);
      }
    });
}

TEST_CASE("neighbours whose messages carry their values need no channels for them") {
  const auto channels = [](int ranks, const std::string& time, const std::string& statement) {
    const Plan plan = Plan::parse(R"({"kplan": 1, "name": "p",
    "parameters": {"n": {"type": "i64", "default": 0, "time": ")" +
                                  time + R"("}},
    "buffers": {"a": {"type": "i64", "shape": [8]}, "b": {"type": "i64", "shape": [8]}, "c": {"type": "f64", "shape": [5000]}},
    "statements": [{"communicate": ")" +
                                  statement + R"("}]})");
    std::vector<int> out(static_cast<std::size_t>(ranks));
    transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> base) {
      const auto transport = std::make_shared<CountingTransport>(std::move(base));
      Engine engine(transport);
      engine.compile(plan);
      out[static_cast<std::size_t>(engine.rank())] = transport->opened;
    });
    return out;
  };
  const auto more = [&](int ranks, const std::string& statement) {
    std::vector<int> out = channels(ranks, "varying", statement);
    const std::vector<int> fixed = channels(ranks, "fixed", statement);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] -= fixed[k];
    return out;
  };
  using Counts = std::vector<int>;
  const std::string both = "a[n]@(rank + 1) % size <<= n * b[0]@rank, b[n]@(rank + size - 1) % size <<= b[1]@rank",
                    around = "a[n]@(rank + 1) % size <<= b[n]@rank",
                    some = "a[n]@0 <<= b[n]@1, a[n]@1 <<= b[n]@0, a[n]@2 <<= n * b[n]@1",
                    longer = "c[:]@(rank + 1) % size <<= f64(n) * c[:]@rank";
  CHECK(more(2, both) == Counts{0, 0});
  CHECK(more(3, both) == Counts{0, 0, 0});
  CHECK(more(2, around) == Counts{0, 0});
  CHECK(more(3, around) == Counts{2, 2, 2});
  CHECK(more(3, some) == Counts{2, 1, 3});
  CHECK(more(2, longer) == Counts{2, 2});
}

TEST_CASE("uniform values are compared in the run wherever its data comes from a neighbour that has others") {
  // Short and long, in the first phase and in one that follows.
  const std::string statements[] = {
      "a[n]@(rank + 1) % size <<= b[n]@rank", "c[n, :]@(rank + 1) % size <<= c[n, :]@rank",
      "a[n]@rank <<= b[n]@rank\"}, {\"communicate\": \"b[n]@(rank + 1) % size <<= a[n]@rank"};
  for (const std::string& statement : statements) {
    const Plan plan = Plan::parse(
        R"({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying", "default": 0}},
    "buffers": {"a": {"type": "i64", "shape": [8]}, "b": {"type": "i64", "shape": [8]},
                "c": {"type": "i64", "shape": [8, 1000]}}, "statements": [{"communicate": ")" +
        statement + R"("}]})");
    for (const int ranks : {2, 5})
      on_ranks(ranks, [&](Engine& engine) {
        Executable e = engine.compile(plan);
        std::vector<std::int64_t> a(8), b(8), c(8000);
        e.bind("a", a);
        e.bind("b", b);
        e.bind("c", c);
        const std::string message = error_of_run_20(e, engine.rank());
        if (engine.rank() == 1 || engine.rank() == 2 % ranks)
          claim(names_rank_1_in_run_20(message), statement + ": " + message);
      });
  }
}

TEST_CASE("values beside long messages are waited for in the run") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying", "default": 0}},
    "buffers": {"c": {"type": "i64", "shape": [8, 1000]}},
    "statements": [{"communicate": "c[n, :]@(rank + 1) % size <<= c[n, :]@rank"}]})");
  transport::run_local(3, [&](std::shared_ptr<transport::Transport> base) {
    const auto transport = std::make_shared<LateTransport>(std::move(base));
    Engine engine(transport);
    Executable e = engine.compile(plan);
    claim(transport->late == 4, "channels to and from both neighbours");
    std::vector<std::int64_t> c(8000);
    e.bind("c", c);
    const std::string message = error_of_run_20(e, engine.rank());
    if (engine.rank() > 0) claim(names_rank_1_in_run_20(message), "in the run: " + message);
  });
}

TEST_CASE("ranks of a pipeline wait for what they are sent, and for nobody else") {
  // Those of even number hand on by one plan, the others by another: each waits for the rank before it and then sends.
  const auto hand_on = [](int parity) {
    return Plan::parse(
        R"({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying", "default": 0}},
    "buffers": {"a": {"type": "i64", "shape": [8, 2]}}, "statements": [{"communicate":
      "a[n, 0]@rank + 1 <<= a[n, 1]@rank where rank % 2 == )" +
        std::to_string(parity) + R"(, rank + 1 < size"}]})");
  };
  for (const int ranks : {2, 4, 5})
    on_ranks(ranks, [&](Engine& engine) {
      const int rank = engine.rank();
      std::vector<std::int64_t> a(16, -1);
      std::vector<Executable> plans;
      for (const int parity : {0, 1}) plans.push_back(engine.compile(hand_on(parity)));
      for (Executable& e : plans) e.bind("a", a);
      Executable &receive = plans[(rank + 1) % 2], &send = plans[rank % 2];
      for (std::int64_t run = 0; run < 500; ++run) {
        const auto n = static_cast<std::size_t>(run % 8);
        receive.set("n", run % 8);
        receive.run();
        a[2 * n + 1] = rank == 0 ? run : a[2 * n] + 1;
        send.set("n", run % 8);
        send.run();
        claim(a[2 * n + 1] == run + rank, "it has been handed on");
      }
    });
}

TEST_CASE("a rank that nobody sends anything may be thousands of runs ahead, and still compares them all") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying", "default": 0}},
    "buffers": {"a": {"type": "i64", "shape": [8]}}, "statements": [{"communicate": "a[n]@0 <<= a[n]@rank where false"}]})");
  constexpr std::int64_t runs = 10000, early = 4000;
  for (const std::int64_t wrong : {std::int64_t{10}, early + 200, runs - 1})
    for (const bool is_set : {true, false}) {
      std::atomic<std::int64_t> reached{0};
      on_ranks(2, [&](Engine& engine) {
        Executable e = engine.compile(plan);
        std::vector<std::int64_t> a(8);
        e.bind("a", a);
        while (engine.rank() == 1 && reached < early) std::this_thread::yield();
        std::string message;
        for (std::int64_t run = 0; run < runs && message.empty(); ++run) {
          const bool is_wrong = engine.rank() == 1 && run == wrong;
          if (!is_wrong || is_set) e.set("n", is_wrong ? 7 : run % 7);
          message = error_of([&] { e.run(); });
          if (engine.rank() == 0) reached = run;
        }
        if (message.empty()) message = error_of_runs(e, [] { return false; });
        if (engine.rank() == 0 && !is_set) return claim(!message.empty(), "what rank 1 has not set it does not tell");
        const auto expected = fmt::format("was set to {} on rank 0 and to {} on rank 1, for run {};", wrong % 7,
                                          is_set ? 7 : (wrong - 1) % 7, wrong);
        claim(message.find(expected) != std::string::npos, expected + " expected: " + message);
      });
    }
}

TEST_CASE("messages that values would make long enough for pieces do not carry them") {
  const Plan plan = Plan::parse(R"({"kplan": 1, "name": "p",
    "parameters": {"f": {"type": "f32", "time": "varying", "default": 1}, "n": "i64"},
    "buffers": {"all": {"type": "f32", "shape": ["size", "n"]}, "mine": {"type": "f32", "shape": ["n"]}},
    "statements": [{"communicate": "all[i, :]@j <<= f * mine[:]@i where i in world, j in world"}]})");
  const tests::Variable bytes("KPLAN_PIECE_BYTES", "4096");  // 2048 go in pieces where they go to two others alike
  for (const std::int64_t n : {510, 511, 512})
    on_ranks(3, [&](Engine& engine) {
      Executable e = engine.compile(plan, {{"n", n}});
      std::vector<float> all(static_cast<std::size_t>(3 * n)), mine(static_cast<std::size_t>(n), 1);
      e.bind("all", all);
      e.bind("mine", mine);
      e.set("f", engine.rank() == 1 ? 2.0F : 3.0F);
      const std::string message = error_of([&] { e.run(); });
      claim(message.find("uniform parameter `f` was set to ") != std::string::npos, std::to_string(n) + ": " + message);
    });
}

TEST_CASE("what lies between the elements of a uniform buffer is not compared") {
  for (const bool is_fixed : {true, false}) {
    const Plan plan = Plan::parse(
        R"({"kplan": 1, "name": "p", "buffers": {"a": {"type": "i64", "shape": [8]}, "b": {"type": "i64", "shape": [8]},
    "u": {"type": "i32", "shape": [2, 2], "strides": [4, 1], "scope": "uniform", "time": ")" +
        std::string(is_fixed ? "fixed" : "varying") +
        R"("}}, "statements": [{"communicate": "a[k]@(rank + 1) % size <<= b[k]@rank where i in range(2), k in u[i, :]"}]})");
    on_ranks(3, [&](Engine& engine) {
      const int rank = engine.rank();
      std::vector<std::int64_t> a(8, -1), b(8, rank);
      std::vector<std::int32_t> u{5, 0, 10 + rank, 20 + rank, 7, 2};
      Values values;
      if (is_fixed) values.emplace_back("u", u);
      Executable e = engine.compile(plan, values);
      e.bind("a", a);
      e.bind("b", b);
      if (!is_fixed) e.bind("u", u);
      e.run();
      const std::int64_t left = (rank + 2) % 3;
      claim(a == std::vector<std::int64_t>{left, -1, left, -1, -1, left, -1, left}, "elements have come");
      u[5] += rank == 1 ? 1 : 0;
      if (is_fixed) values = {{"u", u}};
      const std::string message = error_of([&] { is_fixed ? void(engine.compile(plan, values)) : e.run(); });
      // At a run, by those that letters go between.
      const bool is_told = is_fixed || left == 1 || rank == 1;
      claim((message.find("[KP-A002]") != std::string::npos) == is_told, "elements are compared");
    });
  }
}
