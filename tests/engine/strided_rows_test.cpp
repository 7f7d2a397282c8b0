// Rows whose elements lie apart: columns of matrices that contents choose anew in every run.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "engine/runtime/arrived_rows.hpp"
#include "engine/runtime/row_choice.hpp"
#include "random_plan.hpp"

using namespace kplan;

TEST_CASE("rows along a dimension meet where they have an element in common", "[strided-rows]") {
  // Of an array [5, 4, 3] of elements of 8 bytes, along its second dimension.
  constexpr RowSteps steps{8, 24, 4};
  std::mt19937 random(3);
  DistinctRows rows;
  int meet = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::int64_t> firsts, counts;
    std::set<std::int64_t> met;
    bool are_distinct = true;
    for (std::size_t n = random() % 6; n-- > 0;) {
      const auto x = static_cast<std::int64_t>(random() % 5), y = static_cast<std::int64_t>(random() % 4),
                 z = static_cast<std::int64_t>(random() % 3);
      firsts.push_back(8 * ((x * 4 + y) * 3 + z));
      counts.push_back(static_cast<std::int64_t>(random() % static_cast<unsigned>(5 - y)));
      for (std::int64_t k = 0; k < counts.back(); ++k)
        are_distinct = met.insert(firsts.back() + 24 * k).second && are_distinct;
    }
    CAPTURE(round, firsts, counts);
    CHECK(rows.are_distinct(firsts, counts.data(), steps) == are_distinct);
    meet += are_distinct ? 0 : 1;
  }
  CHECK(meet > 100);
}

TEST_CASE("columns that lists choose come to their places, copied and added, pushed and pulled", "[strided-rows]") {
  using namespace kplan::test;
  for (const bool is_pull : {false, true})
    for (const char* op : {"assign", "sum"})
      for (const char* type : {"f64", "i16", "f32", "c128"})
        for (const auto& [place, value] :
             {std::pair("A[:, k, 1]", "B[:, p % 4, 0]"), std::pair("A[1:4, k, q]", "B[2:5, p % 4, q]"),
              std::pair("A[n, :, k % 3]", "B[k, 0:4, p % 3]"), std::pair("A[n, 1:, 0]", "C[k % 2, p % 3, :]")}) {
          RandomPlan plan;
          plan.ranks = 3;
          plan.data_seed = 17;
          plan.buffers = {{"A", type, {5, 4, 3}, {}, "", false, false},
                          {"B", type, {5, 4, 3}, {}, "", false, false},
                          {"C", type, {2, 3, 3}, {}, "", false, false},
                          {"pivots", "i64", {4}, {}, R"("time": "varying")", false, false}};
          RandomStatement s;
          s.is_pull = is_pull;
          s.clauses = {"k in range(4)", "p = abs(pivots[k])", "n = k", "q = p % 3"};
          // Of a push no two ranks may assign to one place.
          s.reductions = {{place, is_pull || op == std::string("sum") ? "(rank + p) % size" : "(rank + 1) % size", op,
                           value, "rank"}};
          if (is_pull) std::swap(s.reductions[0].receiver, s.reductions[0].sender);
          plan.statements = {s};
          const Plan parsed = Plan::parse(plan.to_json());
          CHECK(goes_by_rows(parsed.model(), with_own_rank(parsed.model().statements[0])));
          const Outcome outcome = compare_with_reference(plan, 3);
          INFO(plan.to_json() << "\n" << outcome.what);
          CHECK(outcome.kind == Outcome::Kind::identical);
        }
}
