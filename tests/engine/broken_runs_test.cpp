// Runs that end by an exception from wherever it may come.
#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <thread>

#include "tests/engine/on_ranks.hpp"
#include "tests/engine/wrapped_transport.hpp"

using namespace kplan;
using kplan::tests::claim;
using kplan::tests::error_of;

namespace {

constexpr std::int64_t count = 20000;

/// Is counted while it lives.
class CountedExchange final : public tests::WrappedExchange {
 public:
  CountedExchange(std::unique_ptr<SparseExchange> base, int& living)
      : WrappedExchange(std::move(base)), living_(living) {
    ++living_;
  }
  ~CountedExchange() override { --living_; }

 private:
  int& living_;
};

/// Fails when it is to move something on.
class FailingTransport final : public tests::WrappedTransport {
 public:
  using WrappedTransport::WrappedTransport;
  bool fails = false;
  int exchanges = 0;
  std::unique_ptr<transport::SparseExchange> open_exchange(transport::Clock::time_point deadline,
                                                           transport::Use use) override {
    return std::make_unique<CountedExchange>(WrappedTransport::open_exchange(deadline, use), exchanges);
  }
  void progress() override {
    if (fails) throw TransportError("KP-T009", "the network is gone");
    WrappedTransport::progress();
  }
};

const std::function<void(Executable&)> ways[] = {
    [](Executable& x) { x.run(); },
    [](Executable& x) {
      x.start();
      x.wait();
    },
    [](Executable& x) {
      x.start();
      (void)x.test();
    },
};

}  // namespace

TEST_CASE("a run that the transport fails is broken off, and what it has lent is the program's again") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "swap", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "i64", "shape": ["n"]}, "b": {"type": "i64", "shape": ["n"]}},
    "statements": [{"communicate": "a[k]@(rank + 1) % size <<= b[n - 1 - k]@rank where k in range(n)"}]})json");
  for (const auto& way : ways) {
    std::atomic<bool> has_failed = false;
    transport::run_local(2, [&](std::shared_ptr<transport::Transport> base) {
      const auto transport = std::make_shared<FailingTransport>(std::move(base));
      Engine engine(transport);
      Executable x = engine.compile(plan, {{"n", count}});
      std::vector<std::int64_t> a(count), b(count, 1 + engine.rank());
      x.bind("a", a);
      x.bind_bytes("b", std::as_writable_bytes(std::span(b)), Written::seldom);
      x.run();
      if (engine.rank() == 0) {
        transport->fails = true;
        const std::string error = error_of([&] { way(x); });
        std::ranges::fill(b, -1);
        has_failed = true;
        claim(error.ends_with("[KP-T009]"), "it is told: " + error);
        const std::string next = error_of([&] { x.run(); });
        claim(next.ends_with("[KP-T011]"), "no run follows: " + next);
        x.bind("a", a);
        return;
      }
      while (!has_failed) std::this_thread::yield();
      const std::string error = error_of([&] { x.run(); });
      claim(error.find("rank 0 has ended") != std::string::npos, "it waits for rank 0: " + error);
      claim(a == std::vector<std::int64_t>(count, 1), "it has not read what is not lent any more");
    });
  }
}

TEST_CASE("a run that the transport fails gives up its exchanges, which move what lies in the program's memory") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "rows", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "i64", "shape": ["n"]}, "b": {"type": "i64", "shape": ["n"]},
    "to": {"type": "i64", "shape": ["n"], "scope": "private", "time": "varying"}},
    "statements": [{"communicate": "a[k]@to[k] <<= b[k]@rank where k in range(n)"}]})json");
  for (const auto& way : ways)
    transport::run_local(2, [&](std::shared_ptr<transport::Transport> base) {
      const auto transport = std::make_shared<FailingTransport>(std::move(base));
      Engine engine(transport);
      const int before = transport->exchanges;
      Executable x = engine.compile(plan, {{"n", count}});
      claim(transport->exchanges == before + 1, "one exchange for its letters");
      if (engine.rank() == 1) return;  // never comes
      std::vector<std::int64_t> a(count), b(count), to(count, 1);
      x.bind("a", a);
      x.bind("b", b);
      x.bind("to", to);
      transport->fails = true;
      const std::string error = error_of([&] { way(x); });
      claim(error.ends_with("[KP-T009]"), "it is told: " + error);
      claim(transport->exchanges == before, "the exchange is no more");
    });
}
