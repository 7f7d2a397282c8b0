// Messages whose lines are far: unpacked some lines at a time, while the next ones come.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/engine/random_plan.hpp"
#include "tests/variable.hpp"

using namespace kplan::test;

namespace {

/// Of `count` elements as a rule, to the next rank, or only from rank 0 to rank 1.
RandomPlan plan_of(RandomReduction sent, const std::string& clauses, int count, bool is_one_way) {
  sent.receiver = is_one_way ? "1" : "(rank + 1) % size";
  sent.sender = is_one_way ? "0" : "rank";
  RandomStatement s;
  s.reductions = {sent};
  s.clauses = {fmt::format(fmt::runtime(clauses), count)};
  RandomPlan plan;
  plan.ranks = 2;
  plan.data_seed = 5;
  for (const char* name : {"x", "y"}) plan.buffers.push_back({name, "f32", {3000, 7}, {}, "", false, false});
  for (const char* name : {"s", "t"}) plan.buffers.push_back({name, "f32", {80, 80}, {}, "", false, false});
  for (const char* name : {"p", "q"}) plan.buffers.push_back({name, "pair", {3000}, {}, "", false, false});
  plan.buffers.push_back({"d", "f64", {3000, 7}, {}, "", false, false});
  plan.statements = {s};
  return plan;
}

}  // namespace

TEST_CASE("messages whose lines are far are right, whole or in pieces, and whatever they update") {
  const kplan::tests::Variable all_far("KPLAN_FAR_NS", "0");
  struct Form {
    RandomReduction sent;
    const char* clauses;
  };
  const Form forms[] = {
      {{"x[k, 2:5]", "", "assign", "y[k, 1:4]", ""}, "k in range({})"},
      {{"x[k, 6]", "", "sum", "y[k, 0]", ""}, "k in range({})"},
      {{"d[k, 3]", "", "sum", "y[k, 0] * 2", ""}, "k in range({})"},
      {{"x[k * k % 2999, 1]", "", "sum", "y[k, 5]", ""}, "k in range({})"},
      {{"x[k * 7 % 13, 1]", "", "sum", "y[k, 5]", ""}, "k in range({})"},
      {{"p[k]", "", "assign", "q[k]", ""}, "k in range({}), k % 3 != 1"},
      {{"s[j, k]", "", "assign", "t[k, j]", ""}, "j in range(80), k in range(80)"},
  };
  for (const Form& form : forms) {
    for (const int count : {1367, 3000}) {
      for (const bool is_one_way : {false, true}) {
        for (const char* piece_bytes : {"0", "5000"}) {
          const kplan::tests::Variable pieces("KPLAN_PIECE_BYTES", piece_bytes);
          const RandomPlan plan = plan_of(form.sent, form.clauses, count, is_one_way);
          const Outcome outcome = compare_with_reference(plan);
          INFO(plan.to_json() << "\n" << outcome.what);
          CHECK(outcome.kind == Outcome::Kind::identical);
        }
      }
    }
  }
}
