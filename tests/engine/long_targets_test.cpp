// Targets so long that runs try to write them past the caches.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "tests/engine/two_ranks.hpp"

using namespace kplan;
using tests::holds_on_both;

TEST_CASE("targets that are written through the caches and past them by turns, as runs try, are right") {
  constexpr std::size_t rows = 1100, columns = 260;  // 2.1 MiB in rows of 2 KiB, 2.2 in one block
  using Matrix = std::vector<double>;
  const auto sent = [](int rank, int turn) {
    Matrix out(rows * columns);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<double>(k) + 0.25 * turn + 1e7 * rank;
    return out;
  };
  const auto with_margins = [](Matrix m) {
    for (std::size_t k = 0; k < m.size(); ++k)
      if (k % columns < 2 || k % columns >= 258) m[k] = -1;
    return m;
  };
  const auto are_same = [](const Matrix& a, const Matrix& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  };
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
    constexpr int turns = 3, runs = 112;  // two trials, and what lies between
    std::vector<Matrix> mine, theirs, their_rows;
    for (int turn = 0; turn < turns; ++turn) {
      mine.push_back(sent(engine.rank(), turn));
      theirs.push_back(sent(1 - engine.rank(), turn));
      their_rows.push_back(with_margins(theirs.back()));
    }
    Matrix from(rows * columns), in_rows(from.size(), -1), whole(from.size(), -1);
    x.bind("from", from);
    x.bind("in_rows", in_rows);
    x.bind("whole", whole);
    for (std::size_t run = 0; run < runs; ++run) {
      std::memcpy(from.data(), mine[run % turns].data(), from.size() * sizeof(double));
      x.run();
      if (!are_same(whole, theirs[run % turns]) || !are_same(in_rows, their_rows[run % turns])) return false;
    }
    return true;
  }));
}
