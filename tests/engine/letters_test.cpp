// Varying pushes of plain form, which run row by row: what random plans do not reach.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using kplan::tests::claim;
using kplan::tests::on_ranks;

namespace {

constexpr std::int64_t longest = 400000;

const char* letters =
    R"({"kplan": 1, "name": "p", "parameters": {"longest": "i64"},
    "buffers": {"outbox": {"type": "f64", "shape": ["longest"]}, "inbox": {"type": "f64", "shape": ["size", "longest"]},
                "received": {"type": "i32", "shape": ["size"]},
                "letter": {"type": "i64", "shape": [3], "time": "varying"}},
    "statements": [{"name": "s", "communicate":
      "inbox[from, 0:c]@to <<= outbox[f : f+c]@rank, received[from]@to << sum << i32(c)@rank where from = rank, to = letter[0], c = letter[1], f = letter[2]"}]})";

}  // namespace

TEST_CASE("letters of a few bytes and of megabytes come whole, from other places to other ranks in every run") {
  for (const int ranks : {1, 2, 3, 5})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(Plan::parse(letters), {{"longest", longest}});
      std::vector<double> outbox(longest), inbox(static_cast<std::size_t>(ranks * longest));
      std::vector<std::int32_t> received(static_cast<std::size_t>(ranks));
      std::vector<std::int64_t> letter(3);
      e.bind("outbox", outbox);
      e.bind("inbox", inbox);
      e.bind("received", received);
      e.bind("letter", letter);
      const auto letter_of = [&](int rank, int run) {
        const std::int64_t count = run % 4 == 0 ? longest : run % 4 == 1 ? 0 : (rank + 1) * run;
        return std::vector<std::int64_t>{(rank + run) % ranks, count, (longest - count) / 2};
      };
      for (int run = 0; run < 12; ++run) {
        for (std::int64_t k = 0; k < longest; ++k)
          outbox[static_cast<std::size_t>(k)] = 1e6 * engine.rank() + 1e9 * run + static_cast<double>(k);
        std::ranges::fill(inbox, -1.0);
        std::ranges::fill(received, 1);
        letter = letter_of(engine.rank(), run);
        e.bind("letter", letter);
        e.run();
        for (int from = 0; from < ranks; ++from) {
          const auto sent = letter_of(from, run);
          const std::int64_t count = sent[0] == engine.rank() ? sent[1] : 0;
          claim(received[static_cast<std::size_t>(from)] == 1 + count, "the number is wrong");
          for (std::int64_t k = 0; k < longest; ++k) {
            const double expected = k < count ? 1e6 * from + 1e9 * run + static_cast<double>(sent[2] + k) : -1;
            claim(inbox[static_cast<std::size_t>(from * longest + k)] == expected, "an element is wrong");
          }
        }
      }
    });
}

TEST_CASE("where-bound values of 64 bits reach the receivers of rows") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "buffers": {"A": {"type": "i64", "shape": ["size", 7]},
                "big": {"type": "i64", "shape": [4], "time": "varying"}},
    "statements": [{"name": "s", "communicate": "A[from, b % 7]@to << sum << b@rank where from = rank, k in range(3), b = big[k], to = big[3] % size"}]})");
  on_ranks(3, [&](Engine& engine) {
    Executable e = engine.compile(plan, {});
    std::vector<std::int64_t> a(21), big(4);
    e.bind("A", a);
    e.bind("big", big);
    const auto value = [](std::int64_t rank, std::int64_t k) { return (std::int64_t{1} << 40) * (rank - 1) + 100 * k; };
    for (int run = 0; run < 3; ++run) {
      for (std::int64_t k = 0; k < 4; ++k) big[static_cast<std::size_t>(k)] = k < 3 ? value(engine.rank(), k) : run + 7;
      std::ranges::fill(a, 0);
      e.run();
      std::vector<std::int64_t> expected(21);
      for (std::int64_t from = 0; from < 3 && (run + 7) % 3 == engine.rank(); ++from)
        for (std::int64_t k = 0; k < 3; ++k)
          expected[static_cast<std::size_t>(7 * from + ((value(from, k) % 7) + 7) % 7)] += value(from, k);
      claim(a == expected, "a sum is wrong");
    }
  });
}

TEST_CASE("a place that rows assign twice is named, and the next run is right") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "buffers": {"A": {"type": "f64", "shape": [12]}, "B": {"type": "f64", "shape": [9]},
                "to": {"type": "i32", "shape": [2], "time": "varying"}},
    "statements": [{"name": "s", "communicate": "A[i : i + 3]@0 <<= B[0:3]@rank where k in range(2), i = to[k]"}]})");
  on_ranks(2, [&](Engine& engine) {
    Executable e = engine.compile(plan, {});
    std::vector<double> a(12), b(9, 1.0 + engine.rank());
    std::vector<std::int32_t> to(2);
    e.bind("A", a);
    e.bind("B", b);
    e.bind("to", to);
    for (int run = 0; run < 4; ++run) {
      to = engine.rank() == 0 ? std::vector{0, 3} : std::vector{run % 2 == 0 ? 5 : 6, 9};
      e.bind("to", to);
      std::string code;
      try {
        e.run();
      } catch (const Error& error) {
        code = error.code();
      }
      claim(code == (engine.rank() == 0 && run % 2 == 0 ? "KP-P060" : ""), "run " + std::to_string(run) + code);
      if (engine.rank() == 0 && run % 2 == 1)
        claim(a == std::vector<double>{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}, "an element is wrong");
    }
  });
}
