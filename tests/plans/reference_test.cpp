// The reference interpreter against plain loops written beside each statement.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "tests/plans/simulated_ranks.hpp"

namespace kplan::test {
namespace {

std::vector<double> numbers(int count, double first) {
  std::vector<double> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

const std::string two_f64 =
    R"("buffers": {"A": {"type": "f64", "shape": ["size"]}, "B": {"type": "f64", "shape": ["size"]}})";

}  // namespace

TEST_CASE("the exchange among even ranks transposes their elements and leaves the odd ranks alone",
          "[plans][reference]") {
  const Plan plan = plan_of(two_f64, "A[j]@i <<= B[i]@j where i in world, j in world, i % 2 == 0");
  for (const int size : {1, 2, 3, 5}) {
    SimulatedRanks ranks(plan, size);
    for (int r = 0; r < size; ++r) ranks.set("B", r, numbers(size, 100 * r));
    ranks.run();
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j)
        CHECK(ranks.get<double>("A", i)[static_cast<std::size_t>(j)] == (i % 2 == 0 ? 100 * j + i : 0));
  }
}

TEST_CASE("a circular shift within one buffer reads everything before it writes anything", "[plans][reference]") {
  const Plan plan =
      plan_of(R"("buffers": {"x": {"type": "i32", "shape": [3]}})", "x@(i + 1) % size <<= x@i where i in world");
  for (const int size : {1, 2, 3, 5}) {
    SimulatedRanks ranks(plan, size);
    for (int r = 0; r < size; ++r) ranks.set<std::int32_t>("x", r, {r, 10 + r, 20 + r});
    ranks.run();
    for (int r = 0; r < size; ++r) {
      const int left = (r + size - 1) % size;
      CHECK(ranks.get<std::int32_t>("x", r) == std::vector<std::int32_t>{left, 10 + left, 20 + left});
    }
  }
}

TEST_CASE("two reductions of a statement read before either writes, so they can swap", "[plans][reference]") {
  const Plan plan = plan_of(R"("buffers": {"a": {"type": "i32", "shape": []}, "b": {"type": "i32", "shape": []}})",
                            "a@i <<= b@i, b@i <<= a@i where i in world");
  SimulatedRanks ranks(plan, 3);
  for (int r = 0; r < 3; ++r) {
    ranks.set<std::int32_t>("a", r, {r});
    ranks.set<std::int32_t>("b", r, {-r});
  }
  ranks.run();
  for (int r = 0; r < 3; ++r) {
    CHECK(ranks.get<std::int32_t>("a", r)[0] == -r);
    CHECK(ranks.get<std::int32_t>("b", r)[0] == r);
  }
}

TEST_CASE("statements run one after the other", "[plans][reference]") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "two", "buffers": {"a": {"type": "i32", "shape": []}, "b": {"type": "i32", "shape": []}},
    "statements": [{"communicate": "a@i <<= b@i where i in world"}, {"communicate": "b@i <<= a + 1@i where i in world"}]})");
  SimulatedRanks ranks(plan, 2);
  ranks.set<std::int32_t>("b", 1, {7});
  ranks.run();
  CHECK(ranks.get<std::int32_t>("a", 1)[0] == 7);
  CHECK(ranks.get<std::int32_t>("b", 1)[0] == 8);
}

TEST_CASE("narrow values are widened to the type of the place", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("buffers": {"d": {"type": "f64", "shape": [2]}, "f": {"type": "f32", "shape": [2]}, "w": {"type": "i64", "shape": [2]}, "n": {"type": "i8", "shape": [2]},
      "z": {"type": "c128", "shape": [2]}})",
      "d@i <<= f@i, w@i <<= n@i, z@i <<= f@i where i in world");
  SimulatedRanks ranks(plan, 1);
  ranks.set<float>("f", 0, {0.1f, -2.5f});
  ranks.set<std::int8_t>("n", 0, {-128, 127});
  ranks.run();
  CHECK(ranks.get<double>("d", 0) == std::vector<double>{static_cast<double>(0.1f), -2.5});
  CHECK(ranks.get<std::int64_t>("w", 0) == std::vector<std::int64_t>{-128, 127});
  CHECK(ranks.get<double>("z", 0) == std::vector<double>{static_cast<double>(0.1f), 0, -2.5, 0});
}

TEST_CASE("a sum is taken in ascending sender rank, on top of what the place held, whatever order the set has",
          "[plans][reference]") {
  // Values whose sum depends on the order: the bits tell which order was taken.
  const std::vector<double> values{1e16, 1.0, -1e16, 3.0, 0.1};
  for (const char* set : {"world", "{size - 1 ... 0 by -1}", "{3, 1, 4, 0, 2}"}) {
    SimulatedRanks ranks(plan_of(R"("buffers": {"t": {"type": "f64", "shape": []}, "v": {"type": "f64", "shape": []}})",
                                 std::string("t@0 << sum << v@s where s in ") + set),
                         5);
    double expected = 0.5;
    ranks.set<double>("t", 0, {0.5});
    for (int r = 0; r < 5; ++r) {
      ranks.set<double>("v", r, {values[static_cast<std::size_t>(r)]});
      expected = expected + values[static_cast<std::size_t>(r)];
    }
    ranks.run();
    CHECK(std::bit_cast<std::uint64_t>(ranks.get<double>("t", 0)[0]) == std::bit_cast<std::uint64_t>(expected));
  }
}

TEST_CASE("of one sender, transfers are applied in environment order and then in the order of the statement",
          "[plans][reference]") {
  // left * 10 + right writes down the order in decimal digits.
  const Plan plan = plan_of(
      R"("operators": {"digit": {"expression": "left * 10 + right", "associative": false, "commutative": false}},
      "buffers": {"t": {"type": "i64", "shape": []}})",
      "t@0 << digit << (k + 3 * s)@s, t@0 << digit << 9@s where k in {2, 1}, s in world, s < 2");
  SimulatedRanks ranks(plan, 3);
  ranks.run();
  CHECK(ranks.get<std::int64_t>("t", 0)[0] == 29195949);  // rank 0: k = 2, 9, k = 1, 9; rank 1: 5, 9, 4, 9
}

TEST_CASE("within a group the order of senders is that of their numbers in the group", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("operators": {"digit": {"expression": "left * 10 + right", "associative": false, "commutative": false}},
      "groups": {"back": {"color": 0, "key": "-rank"}}, "buffers": {"t": {"type": "i64", "shape": []}, "v": {"type": "i64", "shape": []}})",
      "t@0 << digit << v@s where s in back", R"("in": "back")");
  SimulatedRanks ranks(plan, 3);
  for (int r = 0; r < 3; ++r) ranks.set<std::int64_t>("v", r, {r + 1});
  ranks.run();
  CHECK(ranks.get<std::int64_t>("t", 2)[0] == 321);  // number 0 in the group is rank 2
}

TEST_CASE("a fresh reduction forgets what its places held and leaves places alone that nothing reaches",
          "[plans][reference]") {
  const std::string buffers = R"("buffers": {"t": {"type": "f64", "shape": [2]}, "v": {"type": "f64", "shape": []}})";
  for (const bool is_fresh : {false, true}) {
    SimulatedRanks ranks(plan_of(buffers, "t[0]@0 << sum << v@s where s in world", is_fresh ? R"("fresh": true)" : ""),
                         3);
    ranks.set<double>("t", 0, {1000, 2000});
    for (int r = 0; r < 3; ++r) ranks.set<double>("v", r, {r + 1.0});
    ranks.run();
    CHECK(ranks.get<double>("t", 0) == std::vector<double>{is_fresh ? 6.0 : 1006.0, 2000});
  }
}

TEST_CASE("allgatherv places every rank's share where the displacements say", "[plans][reference]") {
  const Plan plan = plan_of(R"("buffers": {"rb": {"type": "f64", "shape": [12]}, "sb": {"type": "f64", "shape": [4]},
      "counts": {"type": "i32", "shape": ["size"], "scope": "uniform", "time": "fixed"}, "displs": {"type": "i32", "shape": ["size"], "scope": "uniform", "time": "fixed"}})",
                            "rb[displs[s] : displs[s]+counts[s]]@r <<= sb[0:counts[s]]@s where s in world, r in world");
  const std::vector<std::int32_t> counts{2, 0, 4}, displs{5, 0, 1};
  SimulatedRanks ranks(plan, 3);
  for (int r = 0; r < 3; ++r) {
    ranks.set("counts", r, counts);
    ranks.set("displs", r, displs);
    ranks.set("sb", r, numbers(4, 10 * r + 1));
  }
  ranks.run();
  std::vector<double> expected(12);
  for (std::size_t s = 0; s < 3; ++s)
    for (int k = 0; k < counts[s]; ++k)
      expected[static_cast<std::size_t>(displs[s] + k)] = 10.0 * static_cast<double>(s) + 1 + k;
  for (int r = 0; r < 3; ++r) CHECK(ranks.get<double>("rb", r) == expected);
}

TEST_CASE("a private stride in the where-list is the sender's", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("parameters": {"stride": {"type": "i64", "scope": "private"}}, "buffers": {"A": {"type": "i32", "shape": ["size", 11]}, "B": {"type": "i32", "shape": [11]}})",
      "A[j, k]@i <<= B[k]@j where i in world, j in world, k in {0 ... 10}, k % stride == 0");
  SimulatedRanks ranks(plan, 3, [](const std::string&, int r) { return r + 2; });
  for (int r = 0; r < 3; ++r) {
    std::vector<std::int32_t> b(11);
    std::iota(b.begin(), b.end(), 100 * (r + 1));
    ranks.set("B", r, b);
  }
  ranks.run();
  for (int i = 0; i < 3; ++i) {
    const auto a = ranks.get<std::int32_t>("A", i);
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k <= 10; ++k)
        CHECK(a[static_cast<std::size_t>(j * 11 + k)] == (k % (j + 2) == 0 ? 100 * (j + 1) + k : 0));
  }
}

TEST_CASE("the place is evaluated on the receiver, with the where-bound values of the sender", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("parameters": {"base": {"type": "i64", "scope": "private"}}, "buffers": {"A": {"type": "i32", "shape": [9]}})",
      "A[base + mine]@r <<= i32(10 * base + rank)@s where s in world, r in world, mine = rank");
  SimulatedRanks ranks(plan, 3, [](const std::string&, int r) { return 2 * r; });
  ranks.run();
  for (int r = 0; r < 3; ++r)
    for (int k = 0; k < 9; ++k) {
      const int s = k - 2 * r;  // base is the receiver's 2r, mine the sender's rank
      CHECK(ranks.get<std::int32_t>("A", r)[static_cast<std::size_t>(k)] == (s >= 0 && s < 3 ? 20 * s + s : 0));
    }
}

TEST_CASE("pull gathers ghosts by the receiver's own lists", "[plans][reference]") {
  const Plan plan = plan_of(R"("parameters": {"n_owned": "i64", "n_ghost": {"type": "i64", "scope": "private"}},
      "buffers": {"x": {"type": "f64", "shape": ["n_owned + n_ghost"]}, "ghost_index": {"type": "i32", "shape": ["n_ghost"], "time": "fixed"}, "ghost_owner": {"type": "i32", "shape": ["n_ghost"], "time": "fixed"}})",
                            "x[n_owned + k]@rank <<= x[remote_index]@owner where k in {0 ... n_ghost-1}, remote_index "
                            "= ghost_index[k], owner = ghost_owner[k]",
                            R"("direction": "pull")");
  const auto ghosts = [](int r) { return r; };  // rank 0 has none
  SimulatedRanks ranks(plan, 4, [&](const std::string& name, int r) { return name == "n_owned" ? 3 : ghosts(r); });
  for (int r = 0; r < 4; ++r) {
    std::vector<double> x(static_cast<std::size_t>(3 + ghosts(r)));
    std::iota(x.begin(), x.begin() + 3, 10.0 * r);
    std::vector<std::int32_t> index, owner;
    for (int k = 0; k < ghosts(r); ++k) {
      index.push_back((k + r) % 3);
      owner.push_back((r + k + 1) % 4);
    }
    ranks.set("x", r, x);
    ranks.set("ghost_index", r, index);
    ranks.set("ghost_owner", r, owner);
  }
  ranks.run();
  for (int r = 0; r < 4; ++r)
    for (int k = 0; k < ghosts(r); ++k)
      CHECK(ranks.get<double>("x", r)[static_cast<std::size_t>(3 + k)] == 10.0 * ((r + k + 1) % 4) + (k + r) % 3);
}

TEST_CASE("the value of a pull is evaluated on the sender, with the where-bound values of the receiver",
          "[plans][reference]") {
  const Plan plan = plan_of(
      R"("parameters": {"own": {"type": "i64", "scope": "private"}}, "buffers": {"A": {"type": "i64", "shape": []}})",
      "A@r <<= (100 * own + 10 * rank + mine)@(r + 1) % size where r = rank, mine = own", R"("direction": "pull")");
  SimulatedRanks ranks(plan, 3, [](const std::string&, int r) { return r + 4; });
  ranks.run();
  for (int r = 0; r < 3; ++r) {
    const int s = (r + 1) % 3;
    CHECK(ranks.get<std::int64_t>("A", r)[0] == 100 * (s + 4) + 10 * s + (r + 4));
  }
}

TEST_CASE("groups are made by colour and ordered by key, then rank; a negative colour takes no part",
          "[plans][reference]") {
  const Plan plan = plan_of(
      R"("groups": {"g": {"color": "rank == 4 ? -1 : rank % 2", "key": "rank == 2 ? -1 : 0"}}, "buffers": {"A": {"type": "i32", "shape": [3]}, "v": {"type": "i32", "shape": []}})",
      "A[s]@r <<= i32(v + 10 * size)@s where s in g, r in g", R"("in": "g")");
  SimulatedRanks ranks(plan, 6);
  for (int r = 0; r < 6; ++r) ranks.set<std::int32_t>("v", r, {r + 1});
  ranks.run();
  const std::vector<std::int32_t> even{23, 21, 0}, odd{32, 34, 36}, nothing{0, 0, 0};  // ranks 2, 0 and 1, 3, 5
  CHECK(ranks.get<std::int32_t>("A", 0) == even);
  CHECK(ranks.get<std::int32_t>("A", 2) == even);
  for (const int r : {1, 3, 5}) CHECK(ranks.get<std::int32_t>("A", r) == odd);
  CHECK(ranks.get<std::int32_t>("A", 4) == nothing);
}

TEST_CASE("each built-in operator combines as its name says", "[plans][reference]") {
  const std::vector<std::int32_t> v{6, 3, 12};
  const auto run = [&](const std::string& op, std::int32_t before) {
    SimulatedRanks ranks(plan_of(R"("buffers": {"t": {"type": "i32", "shape": []}, "v": {"type": "i32", "shape": []}})",
                                 "t@1 << " + op + " << v@s where s in world"),
                         3);
    ranks.set<std::int32_t>("t", 1, {before});
    for (int r = 0; r < 3; ++r) ranks.set<std::int32_t>("v", r, {v[static_cast<std::size_t>(r)]});
    ranks.run();
    return ranks.get<std::int32_t>("t", 1)[0];
  };
  CHECK(run("sum", 100) == 121);
  CHECK(run("prod", 2) == 432);
  CHECK(run("min", 5) == 3);
  CHECK(run("max", 5) == 12);
  CHECK(run("band", 15) == 0);
  CHECK(run("bor", 16) == 31);
  CHECK(run("bxor", 0) == (6 ^ 3 ^ 12));
  CHECK(run("land", 1) == 1);
  CHECK(run("land", 0) == 0);
  CHECK(run("lor", 0) == 1);
}

namespace {
struct Located {
  double value;
  std::int32_t index;
  bool operator==(const Located&) const = default;
};
const std::string located =
    R"("types": {"located": {"fields": [{"name": "value", "type": "f64"}, {"name": "index", "type": "i32"}]}}, "buffers": {"t": {"type": "located", "shape": []}, "v": {"type": "located", "shape": []}})";
}  // namespace

TEST_CASE("minloc and maxloc keep the better value with its index, and of equal values the smaller index",
          "[plans][reference]") {
  for (const bool is_min : {true, false}) {
    SimulatedRanks ranks(
        plan_of(located, std::string("t@0 << ") + (is_min ? "minloc" : "maxloc") + " << v@s where s in world"), 4);
    const double sign = is_min ? 1 : -1;
    ranks.set<Located>("t", 0, {{sign * 9, 50}});
    const std::vector<Located> values{{sign * 4, 8}, {sign * 2, 7}, {sign * 2, 3}, {sign * 5, 1}};
    for (int r = 0; r < 4; ++r) ranks.set<Located>("v", r, {values[static_cast<std::size_t>(r)]});
    ranks.run();
    CHECK(ranks.get<Located>("t", 0)[0].value == sign * 2);
    CHECK(ranks.get<Located>("t", 0)[0].index == 3);
  }
}

TEST_CASE("a plan's own operator on scalars is applied once per transfer", "[plans][reference]") {
  SimulatedRanks ranks(
      plan_of(
          R"("operators": {"axpy": {"expression": "left + 2 * right"}}, "buffers": {"t": {"type": "f32", "shape": []}, "v": {"type": "f32", "shape": []}})",
          "t@0 << axpy << v@s where s in world"),
      3);
  float expected = 0.25f;
  ranks.set<float>("t", 0, {expected});
  for (int r = 0; r < 3; ++r) {
    const float v = 0.1f * static_cast<float>(r + 1);
    ranks.set<float>("v", r, {v});
    expected = expected + 2.0f * v;
  }
  ranks.run();
  CHECK(ranks.get<float>("t", 0)[0] == expected);
}

TEST_CASE("a plan's own operators on records choose whole records or combine fields, reading the old fields",
          "[plans][reference]") {
  const auto with = [](const std::string& expression) {
    SimulatedRanks ranks(plan_of(R"("operators": {"mine": {"expression": )" + expression + "}}, " + located,
                                 "t@0 << mine << v@s where s in world"),
                         2);
    ranks.set<Located>("t", 0, {{1.0, 10}});
    ranks.set<Located>("v", 0, {{3.0, 30}});
    ranks.set<Located>("v", 1, {{2.0, 20}});
    ranks.run();
    const Located out = ranks.get<Located>("t", 0)[0];
    return std::pair(out.value, out.index);
  };
  CHECK(with(R"j("left.value < right.value ? right : left")j") == std::pair(3.0, 30));
  CHECK(with(R"j({"value": "left.value + right.value", "index": "max(left.index, right.index)"})j") ==
        std::pair(6.0, 30));
  CHECK(with(R"j({"index": "left.index + 1"})j") == std::pair(1.0, 12));  // a field that is not named stays
  CHECK(with(R"j({"value": "f64(left.index)", "index": "i32(left.value)"})j") == std::pair(1.0, 10));  // swapped twice
}

TEST_CASE("records travel whole, and fields travel alone", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(located, "t@1 <<= v@0, t.index@0 <<= v.index@1, t.value@0 << sum << f32(v.index)@1"), 2);
  ranks.set<Located>("t", 0, {{0.5, -1}});
  ranks.set<Located>("v", 0, {{1.5, 11}});
  ranks.set<Located>("v", 1, {{2.5, 22}});
  ranks.run();
  CHECK(ranks.get<Located>("t", 1)[0].value == 1.5);
  CHECK(ranks.get<Located>("t", 1)[0].index == 11);
  CHECK(ranks.get<Located>("t", 0)[0].value == 22.5);
  CHECK(ranks.get<Located>("t", 0)[0].index == 22);
}

TEST_CASE("slices with steps are taken in row-major order on both sides", "[plans][reference]") {
  const Plan plan =
      plan_of(R"("buffers": {"M": {"type": "i32", "shape": [3, 5]}, "N": {"type": "i32", "shape": [4, 6]}})",
              "M[0:3:2, 1::2]@0 <<= N[i, 2:6]@0 where i in {3}");
  SimulatedRanks ranks(plan, 1);
  std::vector<std::int32_t> n(24);
  std::iota(n.begin(), n.end(), 0);
  ranks.set("N", 0, n);
  ranks.run();
  std::vector<std::int32_t> expected(15);
  expected[1] = 20, expected[3] = 21, expected[11] = 22, expected[13] = 23;
  CHECK(ranks.get<std::int32_t>("M", 0) == expected);
}

TEST_CASE("strides place elements in memory and leave the gaps alone", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("buffers": {"M": {"type": "i32", "shape": [2, 3], "strides": [1, 4]}, "v": {"type": "i32", "shape": [6]}})",
      "M@0 <<= v@0");
  SimulatedRanks ranks(plan, 1);
  REQUIRE(ranks.get<std::int32_t>("M", 0).size() == 10);  // 1 + 1 * 1 + 2 * 4
  ranks.set<std::int32_t>("M", 0, std::vector<std::int32_t>(10, -1));
  ranks.set<std::int32_t>("v", 0, {1, 2, 3, 4, 5, 6});
  ranks.run();
  CHECK(ranks.get<std::int32_t>("M", 0) == std::vector<std::int32_t>{1, 4, -1, -1, 2, 5, -1, -1, 3, 6});
}

TEST_CASE("arithmetic on slices is element by element, and a single element meets each", "[plans][reference]") {
  const Plan plan = plan_of(R"("buffers": {"a": {"type": "f64", "shape": [4]}, "b": {"type": "f64", "shape": [4]}})",
                            "a[0:3]@0 <<= b[1:4] * 2 + b[0] - a[0:3]@0");
  SimulatedRanks ranks(plan, 1);
  ranks.set<double>("a", 0, {1, 2, 3, 4});
  ranks.set<double>("b", 0, {10, 20, 30, 40});
  ranks.run();
  CHECK(ranks.get<double>("a", 0) == std::vector<double>{49, 68, 87, 4});
}

TEST_CASE("buffers without dimensions hold one element, which its bare name means", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("parameters": {"send_rank": "i64", "recv_rank": "i64"}, "buffers": {"b": {"type": "f64", "shape": []}, "a": {"type": "f64", "shape": []}})",
      "b@recv_rank <<= a@send_rank");
  SimulatedRanks ranks(plan, 3, [](const std::string& name, int) { return name == "send_rank" ? 2 : 1; });
  for (int r = 0; r < 3; ++r) ranks.set<double>("a", r, {r + 0.5});
  ranks.run();
  CHECK(ranks.get<double>("b", 0)[0] == 0);
  CHECK(ranks.get<double>("b", 1)[0] == 2.5);
  CHECK(ranks.get<double>("b", 2)[0] == 0);
}

TEST_CASE("a generator takes the values of its set in order, and duplicates as often as they stand there",
          "[plans][reference]") {
  const auto visited = [](const std::string& set, std::int64_t n) {
    SimulatedRanks ranks(
        plan_of(R"("operators": {"digit": {"expression": "left * 10 + right"}}, "parameters": {"n": "i64"},
        "buffers": {"t": {"type": "i64", "shape": []}, "g": {"type": "u8", "shape": [5], "time": "fixed"}})",
                "t@0 << digit << k@0 where k in " + set),
        1, [&](const std::string&, int) { return n; });
    ranks.set<std::int64_t>("t", 0, {1});  // so that zeros in front are seen
    ranks.set<std::uint8_t>("g", 0, {4, 2, 2, 9, 0});
    ranks.run();
    return ranks.get<std::int64_t>("t", 0)[0];
  };
  CHECK(visited("{0 ... n}", 3) == 10123);
  CHECK(visited("{0...n}", 3) == 10123);
  CHECK(visited("{0 ... n}", -1) == 1);
  CHECK(visited("{0 ... n by 2}", 5) == 1024);
  CHECK(visited("{n ... 1 by -3}", 8) == 1852);
  CHECK(visited("{n ... 1 by -3}", 7) == 1741);
  CHECK(visited("{n ... 8 by -1}", 7) == 1);
  CHECK(visited("range(n)", 3) == 1012);
  CHECK(visited("range(0)", 3) == 1);
  CHECK(visited("range(2, n)", 5) == 1234);
  CHECK(visited("range(n, 1, -2)", 7) == 1753);
  CHECK(visited("range(1, n, 3)", 8) == 1147);
  CHECK(visited("{n, 1, n, 2 * n}", 3) == 13136);
  CHECK(visited("g", 0) == 142290);
  CHECK(visited("g[1:n]", 4) == 1229);
  CHECK(visited("g[::2]", 4) == 1420);
  CHECK(visited("g[n:n]", 4) == 1);
  CHECK(visited("world", 4) == 10);
}

TEST_CASE("names before `in` form a product in which the last varies fastest, and later clauses see earlier names",
          "[plans][reference]") {
  const Plan plan = plan_of(
      R"("operators": {"digit": {"expression": "left * 10 + right"}}, "buffers": {"t": {"type": "i64", "shape": []}})",
      "t@0 << digit << i@0, t@0 << digit << j@0 where i, j in {1, 2}, s = i + j, s != 4, l in range(s - 2)");
  SimulatedRanks ranks(plan, 1);
  ranks.run();
  // (1,1): s = 2, no l; (1,2) and (2,1): one l each; (2,2): filtered out
  CHECK(ranks.get<std::int64_t>("t", 0)[0] == 1221);
}

TEST_CASE("a rank that sends to itself copies, and reduces, as between two ranks", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"t": {"type": "f64", "shape": [2]}, "v": {"type": "f64", "shape": []}})",
                               "t[0]@i <<= v@i, t[1]@i << sum << v@i where i in world"),
                       3);
  for (int r = 0; r < 3; ++r) {
    ranks.set<double>("t", r, {0, 10});
    ranks.set<double>("v", r, {r + 1.0});
  }
  ranks.run();
  for (int r = 0; r < 3; ++r) CHECK(ranks.get<double>("t", r) == std::vector<double>{r + 1.0, r + 11.0});
}

TEST_CASE("the paper's group sum adds the senders of equal parity", "[plans][reference]") {
  SimulatedRanks ranks(
      plan_of(R"("buffers": {"rval": {"type": "f64", "shape": []}, "sbuff": {"type": "f64", "shape": ["size"]}})",
              "rval@r << sum << sbuff[r]@s where s in world, r in world, (s % 2) == (r % 2)"),
      5);
  for (int s = 0; s < 5; ++s) ranks.set("sbuff", s, numbers(5, 100 * s));
  ranks.run();
  for (int r = 0; r < 5; ++r) {
    double expected = 0;
    for (int s = 0; s < 5; ++s)
      if (s % 2 == r % 2) expected += 100 * s + r;
    CHECK(ranks.get<double>("rval", r)[0] == expected);
  }
}

TEST_CASE("the left neighbour of rank 0 is the last rank", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"x": {"type": "i64", "shape": []}})",
                               "x@r <<= rank@(r - 1) % size where r = rank", R"("direction": "pull")"),
                       3);
  ranks.run();
  for (int r = 0; r < 3; ++r) CHECK(ranks.get<std::int64_t>("x", r)[0] == (r == 0 ? 2 : r - 1));
}

TEST_CASE("`&&`, `||` and `?:` leave out what does not matter", "[plans][reference]") {
  SimulatedRanks ranks(
      plan_of(R"("buffers": {"x": {"type": "i64", "shape": [3]}})",
              "x[i]@0 <<= (i == 0 ? 7 : 12 / i)@0 where i in {0, 1, 2}, i == 0 || 6 / i > 0, !(i != 0 && 6 / i == 0)"),
      1);
  ranks.run();
  CHECK(ranks.get<std::int64_t>("x", 0) == std::vector<std::int64_t>{7, 12, 6});
}

TEST_CASE("a double assignment names both environments", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"A": {"type": "f64", "shape": [4]}})",
                               "A[i / 2]@1 <<= 1.0@j where i in {0, 2, 3}, j in {i - 1}, j >= 0, i >= 2"),
                       3);
  const std::string message = ranks.error();
  CHECK(message.find("element 1 of `A` on rank 1 is assigned twice: from rank 1 when i = 2, j = 1 and from rank 2 when "
                     "i = 3, j = 2 [KP-P060]") != std::string::npos);
}

TEST_CASE("an assignment and reductions may meet in a place, in the order of the senders", "[plans][reference]") {
  SimulatedRanks ranks(
      plan_of(R"("buffers": {"t": {"type": "f64", "shape": []}})", "t@0 << sum << 2@2, t@0 <<= 5@1, t@0 << sum << 3@0"),
      3);
  ranks.set<double>("t", 0, {10});
  ranks.run();
  CHECK(ranks.get<double>("t", 0)[0] == 7);  // 10 + 3, then 5, then + 2
}

TEST_CASE("a sender or receiver outside the group is an error that names the environment", "[plans][reference]") {
  const std::string buffers = R"("buffers": {"x": {"type": "i64", "shape": []}})";
  SimulatedRanks to_nobody(plan_of(buffers, "x@i + 1 <<= x@i where i in world"), 3);
  CHECK(to_nobody.error().find("the receiver 3 is not among the group's ranks 0 to 2 when i = 2, rank 2; a filter in "
                               "the where-list can leave it out [KP-P057]") != std::string::npos);
  SimulatedRanks from_nobody(plan_of(buffers, "x@i <<= x@i - 1 where i in world"), 3);
  CHECK(from_nobody.error().find("the sender -1 is not among the group's ranks 0 to 2 when i = 0, rank 0;") !=
        std::string::npos);
  SimulatedRanks filtered(plan_of(buffers, "x@i + 1 <<= x@i where i in world, i + 1 < size"), 3);
  CHECK(filtered.error().empty());
}

TEST_CASE("an error leaves every buffer of its statement as it was where it is met before writing",
          "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"x": {"type": "i64", "shape": [2]}})", "x[i]@i <<= 7@i where i in world"),
                       3);
  CHECK(ranks.error().find("index 2 is outside the 2 elements of `x` when i = 2, rank 2 [KP-P052]") !=
        std::string::npos);
  for (int r = 0; r < 3; ++r) CHECK(ranks.get<std::int64_t>("x", r) == std::vector<std::int64_t>{0, 0});
}

TEST_CASE("an empty dimension empties a selection, however large the dimensions before it are", "[plans][reference]") {
  const Plan plan =
      plan_of(R"("buffers": {"x": {"type": "u8", "shape": [1099511627776, 0]}, "y": {"type": "u8", "shape": [0]}})",
              "y@0 <<= x@0");
  SimulatedRanks ranks(plan, 1);
  CHECK(ranks.error().empty());
}

TEST_CASE("the reference interpreter refuses what would take too long or too much", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"x": {"type": "i64", "shape": [4]}})",
                               "x@i << sum << x@i where i in world, k in {0 ... 9}"),
                       2);
  const auto error_with = [&](const ReferenceLimits& limits) {
    try {
      ranks.run(limits);
    } catch (const PlanError& e) {
      return e.code();
    }
    return std::string();
  };
  CHECK(error_with({.step_count = 10}) == "KP-P051");
  CHECK(error_with({.element_count = 10}) == "KP-P056");
  CHECK(error_with({}).empty());
  SimulatedRanks overlapping(
      plan_of(R"("buffers": {"a": {"type": "u8", "shape": [32768, 65536], "strides": [1, 1]}})", "a@0 <<= a@0"), 1);
  CHECK(overlapping.error().find(
            "the slice has more than 2^30 elements, which cannot be listed one by one on rank 0 [KP-P055]") !=
        std::string::npos);
}

TEST_CASE("memory of another size than the layout's is refused", "[plans][reference]") {
  SimulatedRanks ranks(plan_of(R"("buffers": {"x": {"type": "i64", "shape": [4]}})", "x[0]@0 <<= x[1]@0"), 1);
  ranks.bytes("x", 0).resize(8);
  CHECK_THROWS_AS(ranks.run(), InternalError);
  CHECK(ranks.error().find("[KP-I002]") != std::string::npos);
}

TEST_CASE("contents that are not given are asked for, in values and in sets", "[plans][reference]") {
  const Plan plan = plan_of(
      R"("buffers": {"x": {"type": "i64", "shape": [4]}, "g": {"type": "i64", "shape": [4], "time": "varying"}})",
      "x[0]@0 <<= x[g[1]]@0 where k in g");
  RankState state;
  state.layouts = layouts_of(plan.model(), 0, 1, {});
  state.contents = {nullptr, nullptr};
  const Statement& s = plan.model().statements[0];
  const auto code_of = [](const auto& f) {
    try {
      f();
    } catch (const EvaluationFault& fault) {
      return fault.code;
    }
    return std::string();
  };
  CHECK(code_of([&] { for_each_environment(s, state, [](const auto&) { return true; }); }) == "KP-B010");
  CHECK(code_of([&] { select(*s.reductions[0].value, {.state = &state}); }) == "KP-B010");
}

}  // namespace kplan::test
