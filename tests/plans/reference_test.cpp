// The reference interpreter against plain loops written beside each statement: who sends what to whom, in which order.
#include <bit>
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/plans/simulated_ranks.hpp"

namespace kplan::test {

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

TEST_CASE("an assignment and reductions may meet in a place, in the order of the senders", "[plans][reference]") {
  SimulatedRanks ranks(
      plan_of(R"("buffers": {"t": {"type": "f64", "shape": []}})", "t@0 << sum << 2@2, t@0 <<= 5@1, t@0 << sum << 3@0"),
      3);
  ranks.set<double>("t", 0, {10});
  ranks.run();
  CHECK(ranks.get<double>("t", 0)[0] == 7);  // 10 + 3, then 5, then + 2
}

}  // namespace kplan::test
