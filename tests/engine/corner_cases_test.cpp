// Plans at the corners of the language, each against the reference interpreter: what either says or leaves in memory,
// the other does too.
#include <array>
#include <catch2/catch.hpp>

#include "random_plan.hpp"

using namespace kplan::test;

namespace {

RandomPlan plan_of(int ranks, std::vector<RandomReduction> reductions, std::vector<std::string> clauses) {
  RandomPlan out;
  out.ranks = ranks;
  out.data_seed = 7;
  out.buffers = {{"A", "f64", {8}, {}, "", false, false},
                 {"B", "f64", {8}, {}, "", false, false},
                 {"index", "i64", {12}, {}, R"("time": "fixed")", true, false},
                 {"map", "i64", {40}, {}, R"("time": "fixed", "scope": "uniform")", true, true},
                 {"C", "f64", {6, 4}, {}, "", false, false},
                 {"D", "f64", {6, 4}, {}, "", false, false},
                 {"M", "f64", {4, 2, 3}, {}, "", false, false},
                 {"N", "f64", {4, 2, 3}, {}, "", false, false}};
  RandomStatement s;
  s.reductions = std::move(reductions);
  s.clauses = std::move(clauses);
  out.statements = {s};
  return out;
}

}  // namespace

TEST_CASE("corners of the language agree with the reference interpreter") {
  const auto ends = [](const RandomPlan& plan, Outcome::Kind kind) {
    const Outcome outcome = compare_with_reference(plan);
    INFO(plan.to_json() << "\n" << outcome.what);
    CHECK(outcome.kind == kind);
  };
  const auto runs = [&](const RandomPlan& plan) { ends(plan, Outcome::Kind::identical); };
  const auto fails = [&](const RandomPlan& plan) { ends(plan, Outcome::Kind::both_failed); };

  SECTION("a range whose bounds wait for another variable has all its values") {
    runs(plan_of(3, {{"A[0]", "0", "sum", "B[0]", "i"}}, {"i in world", "j in range(0 * i + 6)", "j == 1"}));
    runs(plan_of(3, {{"A[0]", "0", "sum", "B[0]", "i"}}, {"i in world", "j in {i ... i + 5}", "j == 3"}));
  }
  SECTION("casts that wrap have several arguments for one value") {
    runs(plan_of(2, {{"A[k]", "1", "assign", "B[k]", "0"}}, {"k in range(8)", "u8(k + 254) < u8(3)"}));
    runs(plan_of(2, {{"A[k]", "1", "assign", "B[k]", "0"}}, {"k in range(8)", "i32(k * 1073741824) == 0"}));
    runs(plan_of(2, {{"A[0]", "0", "sum", "B[0]", "u8(k * 256)"}}, {"k in range(4)"}));
    // Of bindings that are one value, though what they hang on is not.
    runs(plan_of(2, {{"A[k]", "1", "sum", "B[k]", "0"}}, {"k in range(8)", "b = k / 8 + 1", "u8(b + 255) == 255"}));
    runs(plan_of(2, {{"A[k]", "1", "sum", "B[k]", "0"}}, {"k in range(2)", "w = max(k, 2)", "i8(w * 100) == -56"}));
    runs(plan_of(2, {{"A[i8(w * 100) + 60]", "i8(w * 100) + 57", "sum", "B[k]", "0"}},
                 {"k in range(2)", "w = max(k, 2)"}));
  }
  SECTION("shifts in bindings are index arithmetic, also where the bindings are values") {
    runs(plan_of(2, {{"N[k / 6, k % 2, k % 3]", "1", "assign", "f64(v)", "0"}},
                 {"k in range(24)", "v = shr(1000 + k, k * 4)"}));
    runs(plan_of(2, {{"N[k / 6, k % 2, k % 3]", "1", "assign", "i32(shr(-1000, w) + k)", "0"}},
                 {"k in range(24)", "w = shr(1000, k + 55)"}));
  }
  SECTION("ranges that reach too far") {
    fails(plan_of(2, {{"A[k / 4611686018427387904 + 2]", "1", "sum", "B[0]", "0"}},
                  {"k in {-9223372036854775807 - 1 ... 9223372036854775807 by 4611686018427387904}"}));
    runs(plan_of(2, {{"A[k / 2305843009213693952 + 1]", "1", "sum", "B[0]", "0"}},
                 {"k in {-2305843009213693952 ... 2305843009213693952 by 2305843009213693952}",
                  "(k / 2305843009213693952) % 3 == 1"}));
  }
  SECTION("slices conform in every environment, not in total") {
    fails(plan_of(2, {{"A[0:k+1]", "1", "sum", "B[0:2-k]", "0"}}, {"k in {0 ... 1}"}));
    fails(plan_of(2, {{"A[k]", "1", "sum", "B[0:k]", "0"}}, {"k in {0 ... 2}"}));
    fails(plan_of(2, {{"A[k*k%5:k*k%5+2]", "1", "sum", "B[0:1]", "0"}}, {"k in {0 ... 2}"}));
    runs(plan_of(2, {{"A[0:k+1]", "1", "sum", "B[1:k+2]", "0"}}, {"k in {0 ... 3}"}));
  }
  SECTION("lengths that hang on private data are compared, by environment") {
    fails(plan_of(3, {{"A[0:index[k] % 3]", "(rank + 1) % size", "sum", "B[0:2]", "rank"}}, {"k in {0 ... 3}"}));
  }
  SECTION("index lists of many environments, in boxes of several generators") {
    const auto moved = [](const char* place, const char* value, std::vector<std::string> clauses) {
      return plan_of(3, {{place, "(rank + 1) % size", "axpy", value, "rank"}}, std::move(clauses));
    };
    runs(moved("A[l]", "B[index[k] % 8]", {"k in range(12)", "l in range(8)"}));
    runs(moved("A[(l + 5) % 8]", "B[(index[k] + l * l) % 8]",
               {"l in {7, 0, 3, 1}", "k in {11, 9, 2, 4}", "m in range(4)"}));
    runs(moved("A[q % 8]", "B[p % 8]", {"k in range(12)", "p = index[k]", "l in range(6)", "q = p + k * l"}));
    runs(moved("A[l]", "B[index[k] % 8]", {"k in range(12)", "l in range(8)", "(k + l) % 3 == 1"}));
    runs(moved("A[l]", "B[index[k] % 8] * f + k", {"k in range(12)", "f = f64(index[k]) / 3", "l in range(8)"}));
    runs(moved("A[index[k] % 8]", "B[l] + l", {"k in range(12)", "l in range(8)"}));
    runs(moved("A[0:4]", "B[index[k] % 3:index[k] % 3 + 4]", {"k in range(12)", "l in range(8)"}));
    runs(moved("A[:]", "B[:] + B[index[k] % 8]", {"k in range(12)", "l in range(8)"}));
    fails(moved("A[0:k % 4]", "B[0:index[k] % 4]", {"k in range(12)", "l in range(8)"}));
    fails(moved("A[l]", "B[index[k] % 8 + l]", {"k in range(12)", "l in range(8)"}));
    fails(moved("A[l]", "B[index[k * l] % 8]", {"k in range(12)", "l in range(8)"}));
    // A binding that nothing needs where it cannot be had, and one that an element does.
    fails(moved("A[l]", "B[index[k] % 8]", {"k in range(12)", "q = 8 / (k - 3)", "l in range(8)"}));
    fails(moved("A[l]", "B[index[q] % 8]", {"k in range(12)", "q = 8 / (k - 3)", "l in range(8)"}));
    for (const bool is_pull : {false, true}) {
      RandomPlan plan = plan_of(3, {{"A[l]", "i", "sum", "B[index[k] % 8]", "(i + 2) % size"}},
                                {"i in world", "k in range(12)", "l in range(8)"});
      plan.statements[0].is_pull = is_pull;
      runs(plan);
    }
  }
  SECTION("slices in many environments") {
    const auto moved = [](const char* place, const char* value) {
      return plan_of(3, {{place, "(rank + 1) % size", "axpy", value, "rank"}}, {"k in range(12)", "l in range(8)"});
    };
    // The same in all environments: dimensions.
    runs(moved("C[l % 6, :]", "D[index[k] % 6, :]"));
    runs(moved("C[l % 6, 1:3]", "D[index[k] % 6, 0:4:2] + B[index[l] % 8]"));
    runs(moved("M[l % 4, :, :]", "N[index[k] % 4, :, :]"));
    runs(moved("M[:, l % 2, :]", "N[:, index[k] % 2, size - 3:3] * rank"));
    runs(moved("A[0:6]", "N[index[k] % 4, :, :] + B[2:8]"));
    runs(moved("C[index[l] % 6, 2:2]", "D[index[k] % 6, 1:1]"));
    runs(moved("A", "B + D[index[k] % 6, k % 4]"));
    fails(moved("C[l % 6, :]", "D[index[k] % 6, 0:3]"));
    fails(moved("C[l % 6, :]", "D[index[k] % 6, 1:5]"));
    fails(moved("C[l % 6, :]", "D[index[k] % 7 + 1, :]"));
    fails(moved("A[0:4]", "D[index[k] % 6, 0:4:rank]"));
    // As many as it may be, one after the other.
    runs(moved("A[0:k % 4]", "B[index[k] % 4:index[k] % 4 + k % 4]"));
    runs(moved("C[l % 6, k % 3:]", "D[index[k] % 6, :4 - k % 3]"));
    runs(moved("A[k % 3:k % 3 + l % 5]", "B[index[l] % 3:index[l] % 3 + l % 5] * B[index[k] % 8]"));
    fails(moved("A[0:k % 4]", "B[0:l % 4]"));
    fails(moved("A[0:k % 4]", "B[index[k] % 7:index[k] % 7 + k % 4]"));
    // Neither.
    runs(moved("C[l % 6, k % 3::2]", "D[index[k] % 6, k % 3::2]"));
    runs(moved("M[:, l % 2, 0:k % 4]", "N[:, index[k] % 2, 0:k % 4]"));
  }
  SECTION("environments of several residue classes, in where-list order") {
    const auto moved = [](const char* place, const char* to, const char* value, const char* from,
                          std::vector<std::string> clauses) {
      return plan_of(3, {{place, to, "axpy", value, from}}, std::move(clauses));
    };
    const auto passed = [&](const char* value, std::vector<std::string> clauses) {
      return moved("A[k % 8]", "(rank + 1) % size", value, "rank", std::move(clauses));
    };
    runs(passed("B[k % 8]", {"k in range(160)", "k % 3 != 1"}));
    runs(passed("B[index[k % 12] % 8] + k", {"k in range(160)", "k % 3 != 1"}));
    runs(passed("B[index[k % 12] % 8] + k", {"k in range(160)", "(2 * k + 3) % 6 != 1", "k % 5 != 0"}));
    runs(passed("B[k % 8] * k", {"k in range(160)", "k * k % 5 == 1"}));
    runs(passed("B[l] * k", {"k in range(40)", "l in range(8)", "(k + 2 * l) % 5 != 3"}));
    runs(passed("B[l] * k", {"k in {30 ... 2}", "l in range(8)", "(k + 2 * l) % 5 == 3 || l % 3 == 1"}));
    runs(passed("B[l] * k", {"k in range(0 - 20, 20)", "l in range(8)", "(k - l) % 4 < 2", "k % 8 >= 0"}));
    runs(passed("B[l] * k", {"k in range(20)", "l in range(k % 8)", "(k + l) % 3 != 1"}));
    runs(passed("B[l] * q", {"k in range(20)", "q = k % 7", "l in {5, 1, 3}", "q % 3 != 1"}));
    runs(passed("B[l] * k", {"k in {4, 1, 9, 12, 7, 3, 2, 10}", "k % 3 != 1", "l in range(8)"}));
    runs(moved("A[0:k % 4]", "(rank + 1) % size", "B[k % 3:k % 3 + k % 4]", "rank", {"k in range(60)", "k % 5 != 2"}));
    runs(moved("C[k % 6, :]", "(rank + 1) % size", "D[k * k % 6, :]", "rank", {"k in range(60)", "k % 5 != 2"}));
    // Ranks by remainders, of quotients too.
    runs(moved("A[k % 8]", "k % size", "B[k % 8] * k", "k / 20 % size", {"k in range(60)"}));
    runs(moved("A[k / 2 % 8]", "k / 2 % size", "B[k % 8] * k", "k / 20", {"k in range(60)"}));
    runs(moved("A[k / 4 % 8]", "k % 4 / 2", "B[k % 8] * k", "(k + 1) / 4 % size", {"k in range(120)"}));
    runs(
        moved("A[k % 8]", "(k + l) % size", "B[k % 8] * l", "(k - l) / 2 % size", {"k in range(40)", "l in range(4)"}));
    fails(passed("B[k % 9]", {"k in range(160)", "k % 3 != 1"}));
    fails(passed("B[8 / (k - 90)]", {"k in range(160)", "k % 7 != 1"}));
    fails(moved("A[k % 8]", "k % 4", "B[k % 8] * k", "k / 20", {"k in range(60)"}));
  }
  SECTION("contents that all ranks know") {
    const auto moved = [&](const char* to, const char* from, std::vector<std::string> clauses,
                           const char* value = "B[k % 8] * k", const char* place = "A[k % 8]") {
      RandomPlan plan = plan_of(3, {{place, to, "axpy", value, from}}, std::move(clauses));
      runs(plan);
      std::swap(plan.statements[0].reductions[0].sender, plan.statements[0].reductions[0].receiver);
      plan.statements[0].is_pull = true;
      runs(plan);
    };
    moved("map[k] % size", "rank", {"k in range(40)"});
    moved("map[k] % size", "k % size", {"k in range(40)"});
    moved("map[k] % size", "(map[k] + map[39 - k]) % size", {"k in range(40)"});
    moved("map[k] % size", "map[k] / 4", {"k in range(40)", "map[k] > 2"});
    moved("map[k] - 3", "map[k] % size", {"k in range(40)", "map[k] >= 3", "map[k] < 6"});
    moved("map[k] % size", "map[k] - 3", {"k in range(40)", "map[k] >= 3 && map[k] < 6"});
    moved("(rank + 1) % size", "rank", {"k in range(40)", "map[k] % 2 == 1"});
    moved("r", "map[k] % size", {"k in range(40)", "r in world"});
    moved("map[k] % size", "r", {"r in world", "k in range(10 * r, 10 * r + 10)"});
    moved("map[k] % size", "r", {"k in range(40)", "r in world", "map[39 - k] % 3 != r"});
    moved("map[k] % size", "rank", {"k in range(40)", "k % 3 != 1", "map[k] % 5 != rank"});
    moved("q % size", "map[q] % size", {"k in {39 ... 1}", "q = map[k]", "l in range(4)", "map[q + l] != 5"},
          "B[q % 8] * l");
    moved("map[k] % size", "rank", {"k in range(40)", "l in range(map[k])", "map[l] != 3"}, "B[l % 8]");
    moved("map[k] % size", "k % size", {"k in {4, 1, 9, 12, 7, 3, 2, 30, 31, 32, 33}"});
    moved("map[k] % size", "rank", {"k in map", "l in range(3)"}, "B[(k + l) % 8]");
    moved("map[2 * k] % size", "rank", {"k in range(20)"}, "D[k % 6, :]", "C[k * 5 % 6, :]");
    moved("map[2 * k] % size", "rank", {"k in range(20)", "map[k] != 3"}, "D[k % 6, k % 3::2]", "C[k % 6, k % 3::2]");
    moved("map[k] % size", "rank", {"k in range(20)", "l in range(100)", "map[k] != 3"}, "B[l % 8] + k");
    for (const bool is_pull : {false, true})
      for (const auto& [to, from, clause] : std::vector<std::array<const char*, 3>>{
               {"map[k] - 3", "rank", "map[k] >= 3"},
               {"rank", "map[k] - 3", "map[k] >= 3"},
               {"map[k] - 3", "k % size", "map[k] < 6"},
               {"map[k] % size", "k % size", "8 / (map[k] - 3) > 2"},
               {"map[k] % (map[k] - 3)", "k % size", "map[k] != 9"},
               {"map[k] % (map[k] - 3)", "map[k] % size", "map[k] > 5 || map[k] < 3 || map[k] == 5"},
               {"map[k + 1] % size", "k % size", "k > 3"}}) {
        RandomPlan plan = plan_of(3, {{"A[k % 8]", to, "axpy", "B[k % 8] * k", from}}, {"k in range(40)", clause});
        plan.statements[0].is_pull = is_pull;
        fails(plan);
      }
  }
  SECTION("ranges between contents") {
    const auto moved = [&](const char* to, const char* from, std::vector<std::string> clauses,
                           const char* value = "B[l % 8] * l", const char* place = "A[(l + k) % 8]") {
      RandomPlan plan = plan_of(3, {{place, to, "axpy", value, from}}, std::move(clauses));
      for (const bool is_pull : {false, true}) {
        plan.statements[0].is_pull = is_pull;
        runs(plan);
        // Two reductions meet in one place: the order of environments matters between them.
        RandomPlan both = plan;
        both.statements[0].reductions.push_back({"A[l % 8]", to, "prod", "B[k % 8] + 0.5", from});
        runs(both);
        std::swap(plan.statements[0].reductions[0].sender, plan.statements[0].reductions[0].receiver);
      }
    };
    for (const std::string list : {"map", "index"}) {
      const auto range = [&](const char* k, const char* next) {
        return "l in range(" + list + "[" + k + "], " + list + "[" + next + "])";
      };
      moved("(r + 1) % size", "r", {"r = rank", "k in range(11)", range("k", "k + 1")});
      moved("(r + 1) % size", "r", {"r = rank", "k in range(11)", range("k", "k + 1"), "l % 3 != 1"});
      moved("(r + 1) % size", "r", {"r = rank", "k in range(11)", range("k", "k + 1"), "index[l] % 3 != 1"});
      moved("(r + 1) % size", "r", {"r = rank", "q in range(11)", "k = q / 2", range("q", "11 - q"), "j in range(l)"},
            "B[j % 8] * l");
      moved("(r + 1) % size", "r", {"r = rank", "k in range(11)", "l in {" + list + "[k] ... 9}"});
      moved("(r + 1) % size", "r", {"r = rank", "k in range(11)", "l in range(" + list + "[k], 30, 2)"});
      moved("(r + 1) % size", "r", {"r = rank", "k in range(11)", "l in range(5 - " + list + "[k], 5)"},
            "B[(l + 8) % 8] * l", "A[(l + k + 8) % 8]");
      moved("(r + 1) % size", "r", {"r = rank", "k in range(0)", range("k", "k + 1")});
    }
    moved("map[k] % size", "map[k + 1] % size", {"k in range(11)", "l in range(map[k], map[k + 1])"});
    moved("map[l] % size", "(k + l) % size", {"k in range(11)", "l in range(map[k], map[k + 1])"});
    moved("k % size", "(k + l) % size", {"k in range(30)", "l in range(map[k], map[k + 1])", "map[l] < 8 || k == l"});
    moved("(r + 1) % size", "r", {"r in world", "k in range(11)", "l in range(map[k], map[k] + 400)"}, "B[l % 8] * k");
    moved("(r + 1) % size", "r", {"r in world", "k in range(11)", "l in range(k, 11)"}, "D[l % 6, k % 4]");
    for (const auto& [to, clause] :
         std::vector<std::array<const char*, 2>>{{"(r + 1) % size", "l in range(map[k], 8 / (map[k] - 3))"},
                                                 {"(r + 1) % size", "l in range(map[4 * k], map[4 * k] + 1)"},
                                                 {"map[l] - 2", "l in range(map[k], map[k + 1])"},
                                                 {"map[5 * l] % size", "l in range(map[k], map[k + 1])"}})
      fails(plan_of(3, {{"A[l % 8]", to, "axpy", "B[l % 8]", "r"}}, {"r in world", "k in range(11)", clause}));
  }
  SECTION("blocks that are assigned, once and twice") {
    const auto assigned = [](const char* place, const char* value, const char* last) {
      return plan_of(3, {{place, "(rank + 1) % size", "assign", value, "rank"}}, {std::string("k in ") + last});
    };
    runs(assigned("C[k * 5 % 6, 1:3]", "D[k, 1:3]", "range(6)"));
    runs(assigned("C[k * 5 % 6, k % 2:k % 2 + 3]", "D[k, 1:4]", "range(6)"));
    runs(assigned("A[k * k % 5 * 2:k * k % 5 * 2 + 2]", "B[k:k + 2]", "{0, 1}"));
    fails(assigned("C[k * 5 % 6, 1:3]", "D[k % 6, 1:3]", "range(7)"));
    fails(assigned("A[k * k % 5:k * k % 5 + 2]", "B[k:k + 2]", "range(3)"));
    fails(assigned("M[k * 3 % 4, :, k % 3]", "N[k % 4, :, 1]", "range(13)"));
  }
  SECTION("slices that other ranks are told of") {
    const auto told = [](bool is_pull, const char* place, const char* value) {
      const std::string other = "(q + l) % size";
      RandomPlan plan = plan_of(3, {{place, is_pull ? "rank" : other, "sum", value, is_pull ? other : "rank"}},
                                {"k in range(12)", "q = index[k] + k", "l in range(8)"});
      plan.statements[0].is_pull = is_pull;
      return plan;
    };
    for (const bool is_pull : {false, true}) {
      runs(told(is_pull, "A[q * q % 8]", "B[q / 3 % 8] + q"));
      runs(told(is_pull, "C[q % 6, :]", "D[q * l % 6, :]"));
      runs(told(is_pull, "M[q % 4, :, :]", "N[q * q % 4, :, :]"));
      runs(told(is_pull, "M[:, l % 2, :]", "N[:, q % 2, 0:3] * f64(l)"));
      runs(told(is_pull, "A[0:q % 4]", "B[q % 4:q % 4 + q % 4]"));
      runs(told(is_pull, "C[q % 6, q % 3::2]", "D[l % 6, q % 3::2]"));
      fails(told(is_pull, "A[0:q % 4]", "B[0:l % 4]"));
      fails(told(is_pull, "C[q % 7 + 1, :]", "D[l % 7 + 1, :]"));
    }
  }
  SECTION("bindings are evaluated, used or not") {
    fails(plan_of(3, {{"A[0]", "rank", "assign", "B[0]", "rank"}}, {"q = 1 / (rank - 1)"}));
    fails(plan_of(3, {{"A[0]", "rank", "sum", "B[0]", "rank"}}, {"k in {0 ... 5}", "q = 5 / (k - 3)"}));
    runs(plan_of(3, {{"A[0]", "rank", "assign", "B[0]", "rank"}}, {"k in {0 ... 5}", "k == 1", "q = 5 / (k - 3)"}));
  }
  SECTION("a rank's own share and a message that goes to the same places, in every order") {
    for (const int ranks : {2, 3, 4})
      for (const char* op : {"sum", "prod", "min", "axpy", "mean"})
        for (const char* value : {"B[k]", "f32(B[k]) * alpha + i", "B[7 - k]"})
          for (const bool is_fresh : {false, true})
            for (const bool is_any_order : {false, true}) {
              RandomPlan plan =
                  plan_of(ranks, {{"A[k]", "j", op, value, "i"}}, {"i in world", "j in world", "k in range(8)"});
              plan.statements[0].is_fresh = is_fresh;
              plan.statements[0].is_any_order = is_any_order;
              // Sums that may be made in any order differ in their last digits.
              if (!is_any_order || op == std::string_view("min")) runs(plan);
            }
    // All of one share comes before the other where a message meets its places twice.
    for (const int ranks : {2, 3})
      for (const char* op : {"sum", "mean", "axpy"}) {
        runs(plan_of(ranks, {{"A[l]", "j", op, "B[(k + l) % 8]", "i"}},
                     {"i in world", "j in world", "k in range(2)", "l in range(8)", "l >= 2 * k"}));
        runs(plan_of(ranks, {{"A[0:8]", "j", op, "B[0:8]", "i"}, {"A[0:8]", "j", "prod", "B[0:8] + 1", "i"}},
                     {"i in world", "j in world"}));
      }
    // Integers whose operator divides are left alone, and so are places that differ.
    RandomPlan integers =
        plan_of(3, {{"sums[k]", "j", "mean", "index[k]", "i"}}, {"i in world", "j in world", "k in range(8)"});
    integers.buffers.push_back({"sums", "i64", {12}, {}, "", false, false});
    runs(integers);
    runs(plan_of(3, {{"A[i == j ? k : 7 - k]", "j", "sum", "B[k]", "i"}},
                 {"i in world", "j in world", "k in range(8)"}));
    runs(plan_of(3, {{"A[(k + i) % 8]", "j", "sum", "B[k]", "i"}}, {"i in world", "j in world", "k in range(8)"}));
  }
  SECTION("faces of a field whose rows end and begin on one cache line") {
    for (const std::string op : {"assign", "sum"}) {
      RandomPlan plan = plan_of(2, {{"A[1:9, 1:9, t]", "(r + d) % size", op, "B[1:9, 1:9, f]", "r"}},
                                {"r in world", "d in {-1, 1}", "f = d > 0 ? 12 : 1", "t = d > 0 ? 0 : 13"});
      for (std::size_t b = 0; b < 2; ++b) plan.buffers[b].shape = {10, 10, 14};
      runs(plan);
      plan.statements[0].reductions[0].place = "B[1:9, 1:9, t]";
      runs(plan);
      plan.ranks = 1;
      runs(plan);
    }
  }
  SECTION("fresh and any order together lose nothing") {
    RandomPlan plan = plan_of(5, {{"A", "r", "sum", "B", "s"}}, {"s in world", "r in world"});
    plan.statements[0].is_fresh = plan.statements[0].is_any_order = true;
    for (int k = 0; k < 20; ++k) runs(plan);
  }
  SECTION("operators that meet in one place are applied environment by environment") {
    runs(plan_of(3, {{"A[0]", "0", "sum", "B[k]", "s"}, {"A[0]", "0", "prod", "B[k]", "s"}},
                 {"s in world", "k in {0 ... 7}"}));
  }
}

TEST_CASE("too many environments to put in order are an error, not the end of the process") {
  const RandomPlan plan =
      plan_of(2, {{"A[0]", "1", "sum", "B[0]", "0"}, {"A[0]", "1", "prod", "B[0]", "0"}}, {"k in range(5000000)"});
  std::string message;
  try {
    kplan::transport::run_local(2, [&](std::shared_ptr<kplan::transport::Transport> transport) {
      kplan::ReferenceRank rank{
          {kplan::ScalarValue::real(1.5), kplan::ScalarValue::integer(1), kplan::ScalarValue::integer(1)}, {}};
      for (const std::size_t bytes : {64u, 64u, 96u, 320u}) rank.buffers.emplace_back(bytes);
      run_engine(transport, kplan::Plan::parse(plan.to_json()), rank, 1);
    });
  } catch (const kplan::Error& e) {
    message = e.what();
  }
  CHECK_THAT(message, Catch::Contains("[KP-A011]"));
}
