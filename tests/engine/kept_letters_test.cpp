// Letters that are on their way when the executable that has sent them is destroyed.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/engine/on_ranks.hpp"
#include "tests/engine/wrapped_transport.hpp"

using namespace kplan;
using kplan::tests::claim;

namespace {

/// A letter of an exchange that was given up, what it was, and what the exchange was told to keep.
struct GivenUp {
  std::span<const std::byte> letter;
  std::vector<std::byte> bytes;
  std::shared_ptr<const void> kept;
};

/// Notes letters that nobody knows to be sent when it is destroyed.
class NotingExchange final : public tests::WrappedExchange {
 public:
  NotingExchange(std::unique_ptr<SparseExchange> base, std::vector<GivenUp>& given_up)
      : WrappedExchange(std::move(base)), given_up_(given_up) {}
  ~NotingExchange() override {
    for (GivenUp& letter : under_way_) given_up_.push_back(std::move(letter));
  }
  void keep(std::shared_ptr<const void> memory) override { kept_ = std::move(memory); }
  void begin(std::span<const transport::OutgoingLetter> letters) override {
    note(letters);
    WrappedExchange::begin(letters);
  }
  void begin(std::span<const transport::OutgoingLetter> letters, std::span<const int> sources) override {
    note(letters);
    WrappedExchange::begin(letters, sources);
  }
  bool is_complete() override {
    if (!WrappedExchange::is_complete()) return false;
    under_way_.clear();
    return true;
  }

 private:
  void note(std::span<const transport::OutgoingLetter> letters) {
    for (const transport::OutgoingLetter& letter : letters)
      under_way_.push_back({letter.bytes, {letter.bytes.begin(), letter.bytes.end()}, kept_});
  }

  std::vector<GivenUp>& given_up_;
  std::vector<GivenUp> under_way_;
  std::shared_ptr<const void> kept_;
};

class NotingTransport final : public tests::WrappedTransport {
 public:
  using WrappedTransport::WrappedTransport;
  std::unique_ptr<transport::SparseExchange> open_exchange(transport::Clock::time_point deadline,
                                                           transport::Use use) override {
    return std::make_unique<NotingExchange>(WrappedTransport::open_exchange(deadline, use), given_up);
  }
  std::vector<GivenUp> given_up;
};

}  // namespace

TEST_CASE("letters stay as they are though the executable that has sent them is destroyed in a run") {
  // Known on both ends, by rows, with values that are worked out, asked for; then a failure. Among
  // five, uniform values go by letters of their own.
  const std::string statements[] = {
      "a[0:n]@(rank + 1) % size <<= b[0:n]@rank",
      "a[i]@to[i] <<= b[i]@rank where i in range(n)",
      "a[i]@to[i] <<= 2 * b[i]@rank where i in range(n)",
      "a[i]@rank <<= b[i]@to[i] where i in range(n)\", \"direction\": \"pull",
      "a[i]@9 * to[i] <<= b[i]@rank where i in range(n)",
  };
  for (const std::string& statement : statements) {
    const Plan plan = Plan::parse(
        R"({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "time": "varying", "default": 1}},
    "buffers": {"a": {"type": "f64", "shape": [8]}, "b": {"type": "f64", "shape": [8]},
                "to": {"type": "i64", "shape": [8], "scope": "private", "time": "varying"}},
    "statements": [{"name": "s", "communicate": ")" +
        statement + R"("}]})");
    for (const int ranks : {2, 5})
      transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> base) {
        const auto transport = std::make_shared<NotingTransport>(std::move(base));
        Engine engine(transport);
        std::vector<double> a(8), b(8);
        std::vector<std::int64_t> to(8, 1);
        {
          Executable x = engine.compile(plan);
          if (engine.rank() > 0) return;  // ends without a run
          x.bind("a", a);
          x.bind("b", b);
          x.bind("to", to);
          x.set("n", 8);
          x.start();
        }
        claim(!transport->given_up.empty(), statement + ": something is on its way");
        for (const GivenUp& g : transport->given_up)
          claim(std::ranges::equal(g.letter, g.bytes), statement + ": a letter has changed");
      });
  }
}
