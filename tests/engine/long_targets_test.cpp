// Targets so long that runs try to write them past the caches.
#include <catch2/catch.hpp>
#include <vector>

#include "tests/engine/two_ranks.hpp"

using namespace kplan;
using tests::holds_on_both;

TEST_CASE("targets that are written through the caches and past them by turns, as runs try, are right") {
  constexpr std::size_t rows = 1100, columns = 260, taken = 256;  // 2.1 MiB in rows of 2 KiB, 2.2 in one block
  const auto sent = [](int rank, int run, std::size_t k) { return static_cast<double>(k) + 0.25 * run + 1e7 * rank; };
  CHECK(holds_on_both([&](Engine& engine) {
    Executable x = engine.compile(
        Plan::parse(
            R"json({"kplan": 1, "name": "swap", "parameters": {"rows": {"type": "i64"}, "columns": {"type": "i64"}},
    "buffers": {"from": {"type": "f64", "shape": ["rows", "columns"]},
                "in_rows": {"type": "f64", "shape": ["rows", "columns"]},
                "whole": {"type": "f64", "shape": ["rows", "columns"]}},
    "statements": [{"communicate": "in_rows[:, 2:258]@(rank + 1) % size <<= from[:, 2:258]@rank"},
                   {"communicate": "whole[:, :]@(rank + 1) % size <<= from[:, :]@rank"}]})json"),
        {{"rows", std::int64_t{rows}}, {"columns", std::int64_t{columns}}});
    std::vector<double> from(rows * columns), in_rows(from.size(), -1), whole(from.size(), -1);
    x.bind("from", from);
    x.bind("in_rows", in_rows);
    x.bind("whole", whole);
    constexpr int runs = 112;  // two trials, and what lies between
    for (int run = 0; run < runs; ++run) {
      for (std::size_t k = 0; k < from.size(); ++k) from[k] = sent(engine.rank(), run, k);
      x.run();
      for (std::size_t k = 0; k < from.size(); ++k) {
        const double expected = sent(1 - engine.rank(), run, k);
        const bool is_taken = k % columns >= 2 && k % columns < 2 + taken;
        if (whole[k] != expected || in_rows[k] != (is_taken ? expected : -1)) return false;
      }
    }
    return true;
  }));
}
