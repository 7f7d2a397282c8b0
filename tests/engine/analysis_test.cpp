// Analysis without running: patterns, schedules, knowledge, and what they cost.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "engine/bind.hpp"
#include "engine/runtime/program.hpp"
#include "engine/schedule/schedule.hpp"

using namespace kplan;

namespace {

Schedule dry(const Plan& plan, std::int64_t rank, std::int64_t size, const Values& values = {}) {
  const std::shared_ptr<const Plan> holder = std::make_shared<const Plan>(plan);
  return build_schedule(
      bind_values(std::shared_ptr<const PlanModel>(holder, &holder->model()), values, rank, size).bound);
}

Plan plan_of(const std::string& buffers, const std::string& statement, const std::string& more = "") {
  return Plan::parse(R"({"kplan": 1, "name": "p", "buffers": {)" + buffers + "}" + more +
                     R"(, "statements": [{"name": "s", "communicate": ")" + statement + "\"}]}");
}

const char* halo_3d =
    R"(u[tx:tx+cx, ty:ty+cy, tz:tz+cz]@(x * p + y) * p + z <<= u[fx:fx+cx, fy:fy+cy, fz:fz+cz]@rank where
  dx, dy, dz in {-1 ... 1}, dx != 0 || dy != 0 || dz != 0,
  x = rank / (p * p) + dx, y = rank / p % p + dy, z = rank % p + dz, x >= 0 && x < p && y >= 0 && y < p && z >= 0 && z < p,
  cx = dx == 0 ? 8 : 1, cy = dy == 0 ? 8 : 1, cz = dz == 0 ? 8 : 1, fx = dx > 0 ? 8 : 1, fy = dy > 0 ? 8 : 1, fz = dz > 0 ? 8 : 1,
  tx = dx > 0 ? 0 : dx == 0 ? 1 : 9, ty = dy > 0 ? 0 : dy == 0 ? 1 : 9, tz = dz > 0 ? 0 : dz == 0 ? 1 : 9)";

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What rank 0 of 2 packs first where that is the contents of `idx`.
Piece first_sent(const Plan& plan, const std::vector<std::int32_t>& idx) {
  return dry(plan, 0, 2, {{"idx", idx}}).statements[0].sends[0].parts[0].piece;
}

/// An index list with no closed form.
std::vector<std::int32_t> squares(std::size_t count) {
  std::vector<std::int32_t> out;
  for (std::size_t k = 0; k < count; ++k) out.push_back(static_cast<std::int32_t>(k * k % 97));
  return out;
}

}  // namespace

TEST_CASE("a rank finds its 26 neighbours among 10^12 without looking at the others") {
  const Plan plan =
      plan_of(R"("u": {"type": "f64", "shape": [10, 10, 10]})", one_line(halo_3d), R"(, "parameters": {"p": "i64"})");
  const std::int64_t p = 10'000, middle = (5000 * p + 5000) * p + 5000;  // a loop over the others would take days
  Schedule s;
  CHECK(seconds_of([&] { s = dry(plan, middle, p * p * p, {{"p", p}}); }) < 20);
  REQUIRE(s.statements[0].sends.size() == 26);
  REQUIRE(s.statements[0].receives.size() == 26);
  // Plain code: the neighbours in ascending order.
  std::size_t k = 0;
  for (int dx = -1; dx <= 1; ++dx)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dz = -1; dz <= 1; ++dz) {
        if (dx == 0 && dy == 0 && dz == 0) continue;
        const Message& m = s.statements[0].sends[k];
        CHECK(m.peer == middle + (dx * p + dy) * p + dz);
        CHECK(m.element_count == (dx == 0 ? 8 : 1) * (dy == 0 ? 8 : 1) * (dz == 0 ? 8 : 1));
        CHECK(s.statements[0].receives[k].peer == m.peer);
        ++k;
      }
  CHECK(dry(plan, 0, p * p * p, {{"p", p}}).statements[0].sends.size() == 7);
}

TEST_CASE("element ranges become strides, however long they are") {
  const Plan plan =
      plan_of(R"("a": {"type": "f64", "shape": [1000000000, 2]}, "b": {"type": "f64", "shape": [2, 1000000000]})",
              "a[k, 1]@(rank + 1) % size <<= b[0, 999999999 - k]@rank where k in {0 ... 999999999}");
  Schedule s;
  CHECK(seconds_of([&] { s = dry(plan, 3, 8); }) < 20);
  const Piece& from = s.statements[0].sends[0].parts[0].piece;
  CHECK(from.counts == std::vector<std::int64_t>{1'000'000'000});
  CHECK(from.tracks[0] == Track{{999'999'999 * 8LL}, {-8}});
  CHECK(s.statements[0].receives[0].parts[0].piece.tracks[0] == Track{{8}, {16}});
}

TEST_CASE("a redistribution from blocks to cycles is one strided piece for each peer") {
  const Plan plan = plan_of(R"("a": {"type": "f64", "shape": [60]}, "b": {"type": "f64", "shape": [60]})",
                            "a[g / size]@g % size <<= b[g % m]@g / m where m = 240 / size, g in {0 ... 239}");
  const Schedule s = dry(plan, 1, 4);
  REQUIRE(s.statements[0].sends.size() == 3);
  for (const Message& m : s.statements[0].sends) {
    REQUIRE(m.parts.size() == 1);
    CHECK(m.parts[0].piece.list_length == 1);
    CHECK(m.parts[0].piece.counts == std::vector<std::int64_t>{15});
    CHECK(m.parts[0].piece.tracks[0].strides == std::vector<std::int64_t>{32});
  }
}

TEST_CASE("an index buffer becomes a list, and regular parts of it become strides") {
  const Plan plan = plan_of(
      R"("a": {"type": "f64", "shape": [12]}, "b": {"type": "f64", "shape": [100]}, "idx": {"type": "i32", "shape": [12], "time": "fixed"})",
      "a[k]@(rank + 1) % size <<= b[idx[k]]@rank where k in {0 ... 11}");
  const std::vector<std::int32_t> irregular{5, 2, 90, 3, 3, 17, 40, 41, 8, 0, 99, 1},
      regular{3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25}, blocks{10, 11, 12, 40, 41, 42, 7, 8, 9, 90, 91, 92};
  const auto piece = [&](const std::vector<std::int32_t>& idx) { return first_sent(plan, idx); };
  CHECK(piece(irregular).list_length == 12);
  CHECK(piece(regular).list_length == 1);
  CHECK(piece(regular).tracks[0].strides == std::vector<std::int64_t>{16});
  CHECK(piece(blocks).list_length == 4);
  CHECK(piece(blocks).counts == std::vector<std::int64_t>{3});
  CHECK_THROWS_WITH(
      piece({0, 1, 2, 100, 4, 5, 6, 7, 8, 9, 10, 11}),
      Catch::Contains("index 100 is outside the 100 elements of `b`") && Catch::Contains("k = 3, rank 0 [KP-P052]"));
}

TEST_CASE("a long index list says where it leads outside") {
  const Plan plan = plan_of(
      R"("a": {"type": "f64", "shape": [50, 60]}, "b": {"type": "f64", "shape": [100]}, "idx": {"type": "i32", "shape": [3000], "time": "fixed"})",
      "a[k, l]@(rank + 1) % size <<= b[idx[60 * k + l]]@rank where k in range(50), l in range(60)");
  std::vector<std::int32_t> idx = squares(3000);
  const Piece piece = first_sent(plan, idx);
  REQUIRE(piece.element_count() == 3000);
  CHECK(piece.tracks[0].base(2999) == 8 * idx[2999]);
  idx[60 * 41 + 7] = -1;
  CHECK_THROWS_WITH(dry(plan, 0, 2, {{"idx", idx}}), Catch::Contains("index -1 is outside the 100 elements of `b`") &&
                                                         Catch::Contains("k = 41, l = 7, rank 0 [KP-P052]"));
}

TEST_CASE("slices behind an index list are dimensions of its blocks") {
  const Plan plan = plan_of(
      R"("a": {"type": "f64", "shape": [3000, 2, 5]}, "b": {"type": "f64", "shape": [2, 100, 7]}, "idx": {"type": "i32", "shape": [3000], "time": "fixed"})",
      "a[k, :, :]@(rank + 1) % size <<= b[:, idx[k], 1:6]@rank where k in range(3000)");
  const std::vector<std::int32_t> idx = squares(3000);
  const Piece piece = first_sent(plan, idx);
  CHECK(piece.list_length == 3000);
  CHECK(piece.counts == std::vector<std::int64_t>{2, 5});
  CHECK(piece.tracks[0].strides == std::vector<std::int64_t>{8 * 700, 8});
  CHECK(piece.tracks[0].base(2999) == 8 * (7 * idx[2999] + 1));
}

TEST_CASE("maps of homes that all ranks know are walked through, however many entries and ranks there are") {
  const std::string maps = R"("old": {"type": "i32", "shape": [1000000], "scope": "uniform", "time": "fixed"},)"
                           R"("new": {"type": "i32", "shape": [1000000], "scope": "uniform", "time": "fixed"},)";
  const std::string arrays = R"("a": {"type": "f64", "shape": [1000000]}, "b": {"type": "f64", "shape": [1000000]})";
  const Plan plan = plan_of(maps + arrays, "a[k]@(new[k]) <<= b[k]@(old[k]) where k in range(1000000), old[k] >= 0");
  std::vector<std::int32_t> old(1'000'000, -1), home(1'000'000);
  for (std::size_t k = 0; k < old.size(); ++k) {
    home[k] = static_cast<std::int32_t>(k * k % 997);
    if (k % 5 != 0) old[k] = static_cast<std::int32_t>(k / 1000);
  }
  Schedule s;
  CHECK(seconds_of([&] { s = dry(plan, 9, 1000, {{"old", old}, {"new", home}}); }) < 10);
  // Squares of 9000 ... 9999, but for the multiples of 5, modulo 997.
  REQUIRE(s.statements[0].sends.size() > 400);
  std::int64_t sent = 0;
  for (const Message& m : s.statements[0].sends) sent += m.element_count;
  for (const Message& m : s.statements[0].local_send) sent += m.element_count;
  CHECK(sent == 800);
  CHECK(s.statements[0].receives.size() > 500);
}

TEST_CASE("a filter that leaves out a residue class is solved by classes, in where-list order") {
  const Plan plan =
      plan_of(R"("a": {"type": "f64", "shape": [300000]}, "b": {"type": "f64", "shape": [300000]})",
              "a[k]@(rank + 1) % size <<= b[299999 - k]@rank where k in range(300000), (k + rank) % 3 != 1");
  const Piece piece = dry(plan, 0, 2).statements[0].sends[0].parts[0].piece;  // 0, 2, 3, 5, 6, ...
  CHECK(piece.list_length == 1);
  CHECK(piece.counts == std::vector<std::int64_t>{100000, 2});
  CHECK(piece.tracks[0].base(0) == 8 * 299999);
  CHECK(piece.tracks[0].strides == std::vector<std::int64_t>{-24, -16});
}

TEST_CASE("conditions on bits are walked through, and those on bits of block numbers are solved by blocks") {
  const Plan even = plan_of(R"("a": {"type": "f64", "shape": [4200000]}, "b": {"type": "f64", "shape": [4200000]})",
                            "a[k]@(rank + 1) % size <<= b[k]@rank where k in range(4200000), (k & 1) == 0");
  Schedule s;
  const double walked = seconds_of([&] { s = dry(even, 0, 2); });
  const Piece piece = s.statements[0].sends[0].parts[0].piece;
  CHECK(piece.counts == std::vector<std::int64_t>{2100000});
  CHECK(piece.tracks[0].strides == std::vector<std::int64_t>{16});
  const Plan swapped =
      plan_of(R"("a": {"type": "f64", "shape": [1000000]}, "b": {"type": "f64", "shape": [1000000]})",
              "a[k % 1000000]@(k / 1000000) ^ 1 <<= b[k % 1000000]@rank where k in range(size * 1000000), "
              "((k / 1000000) ^ 2) == rank");
  // Fifteen times as many environments, walked through, would take minutes.
  CHECK(seconds_of([&] { s = dry(swapped, 9, 64); }) < walked);
  CHECK(s.statements[0].sends[0].peer == 10);
}

TEST_CASE("contiguous data takes no kernel") {
  const Plan plan = plan_of(R"("a": {"type": "f64", "shape": [8, 16]}, "b": {"type": "f64", "shape": [8, 16]})",
                            "a[0:4, :]@(rank + 1) % size <<= b[4:8, :]@rank");
  const std::shared_ptr<const Plan> holder = std::make_shared<const Plan>(plan);
  const BoundPlan bound = bind_values(std::shared_ptr<const PlanModel>(holder, &holder->model()), {}, 0, 2).bound;
  SpecTable specs;
  const auto lowered = lower(bound, build_schedule(bound), specs);
  CHECK(specs.specs().empty());
  REQUIRE(lowered[0].sends[0].in_place);
  CHECK(lowered[0].sends[0].in_place->offset_bytes == 4 * 16 * 8);
}

TEST_CASE("what a rank sends to itself is moved in one pass, unless it reads what it writes") {
  const auto lowered = [](const char* buffers, const char* statement) {
    const std::shared_ptr<const Plan> holder = std::make_shared<const Plan>(plan_of(buffers, statement));
    const BoundPlan bound = bind_values(std::shared_ptr<const PlanModel>(holder, &holder->model()), {}, 0, 1).bound;
    SpecTable specs;
    return lower(bound, build_schedule(bound), specs)[0];
  };
  const auto moved = lowered(R"("a": {"type": "f64", "shape": [8, 16]}, "b": {"type": "f32", "shape": [16, 8]})",
                             "a[i, j]@0 <<= b[j, i]@0 where i in range(8), j in range(16)");
  CHECK(moved.staging.empty());
  CHECK(moved.local.size() == 1);
  CHECK_FALSE(
      lowered(R"("a": {"type": "f64", "shape": [8]})", "a[7 - i]@0 <<= a[i]@0 where i in range(8)").staging.empty());
}

TEST_CASE("loops of a few steps are literal, also innermost ones whose steps are far apart") {
  const std::shared_ptr<const Plan> holder = std::make_shared<const Plan>(
      plan_of(R"("u": {"type": "f64", "shape": [66, 66, 66]})",
              "u[1:65, 1:65, to]@rank <<= u[1:65, 1:65, from]@rank where d in {-1, 1}, from = d > 0 ? 64 : 1, "
              "to = d > 0 ? 0 : 65"));
  const BoundPlan bound = bind_values(std::shared_ptr<const PlanModel>(holder, &holder->model()), {}, 0, 1).bound;
  SpecTable specs;
  lower(bound, build_schedule(bound), specs);
  REQUIRE(specs.specs().size() == 1);  // row by row, both faces of one together
  CHECK(specs.specs()[0].extents == std::vector<std::int64_t>{jit::at_run_time, jit::at_run_time, 2});
}

TEST_CASE("a message that goes to the same places as the own share is unpacked in one pass with it") {
  const auto lowered = [](const char* statement, int rank) {
    const std::shared_ptr<const Plan> holder = std::make_shared<const Plan>(
        plan_of(R"("a": {"type": "f64", "shape": [8, 16]}, "b": {"type": "f32", "shape": [8, 16]})", statement));
    const BoundPlan bound = bind_values(std::shared_ptr<const PlanModel>(holder, &holder->model()), {}, rank, 3).bound;
    SpecTable specs;
    return lower(bound, build_schedule(bound), specs)[0];
  };
  const auto merged = [](const LoweredStatement& s) {  // by sender; the others' place is empty
    std::string out;
    for (const auto& m : s.receives) out += m.own.empty() ? '-' : m.is_own_first ? '<' : '>';
    CHECK(s.local.empty() == (out.find_first_not_of('-') != std::string::npos));
    return out;
  };
  const char* const all = "a@j << sum << b@i where i in world, j in world";
  CHECK(merged(lowered(all, 0)) == "<-");
  CHECK(merged(lowered(all, 1)) == "-<");
  CHECK(merged(lowered(all, 2)) == "->");
  CHECK(merged(lowered("a[i, :]@j << sum << b[i, :]@i where i in world, j in world", 1)) == "--");
  CHECK(lowered(all, 1).receives[1].calls.size() == 1);
}

TEST_CASE("statements that touch nothing in common run together, others one after the other") {
  const char* buffers =
      R"("a": {"type": "f64", "shape": [4]}, "b": {"type": "f64", "shape": [4]}, "c": {"type": "f64", "shape": [4]}, "d": {"type": "f64", "shape": [4]})";
  const auto phases = [&](const char* first, const char* second) {
    return dry(Plan::parse(std::string(R"({"kplan": 1, "name": "p", "buffers": {)") + buffers +
                           R"(}, "statements": [{"communicate": ")" + first + R"("}, {"communicate": ")" + second +
                           "\"}]}"),
               0, 2)
        .phases.size();
  };
  CHECK(phases("a@1 <<= b@0", "c@1 <<= d@0") == 1);
  CHECK(phases("a@1 <<= b@0", "c@1 <<= b@0") == 1);
  CHECK(phases("a@0 <<= b@1", "c@1 <<= a@0") == 2);                      // reads what was written
  CHECK(phases("a@1 <<= b@0", "b@0 <<= c@1") == 2);                      // writes what was read
  CHECK(phases("a@0 <<= b@1", "a@0 <<= c@1") == 2);                      // writes what was written
  CHECK(phases("a@1 <<= b@0", "c@1 <<= a@0") == 1);                      // on another rank
  CHECK(phases("a[0:2]@0 <<= b[0:2]@1", "c[0:2]@1 <<= a[2:4]@0") == 1);  // other elements
  CHECK(phases("a[0:2]@0 <<= b[0:2]@1", "c[0:2]@1 <<= a[1:3]@0") == 2);
  CHECK(phases("a[0:4:2]@0 <<= b[0:2]@1", "c[0:2]@1 <<= a[1:4:2]@0") == 1);  // in between
  CHECK(phases("a[0:4:2]@0 <<= b[0:2]@1", "c[0:2]@1 <<= a[1:3]@0") == 2);
}

TEST_CASE("many statements on elements of one array run together until one meets another") {
  PlanBuilder builder("p");
  builder.buffer("a", Scalar::f64, {300}).buffer("b", Scalar::f64, {100});
  using Phases = std::vector<std::vector<int>>;
  const auto phases = [&] { return dry(builder.build(), 0, 2).phases; };
  for (int k = 0; k < 6; ++k)
    builder.communicate(
        fmt::format("part{}", k),
        fmt::format("a[3 * k + 1]@1 - r <<= a[3 * k]@r where r in world, k in range({}, {})", 15 * k, 15 * k + 15));
  CHECK(phases() == Phases{{0, 1, 2, 3, 4, 5}});
  builder.communicate("others", "a[3 * k + 2]@1 - r <<= b[k]@r where r in world, k in range(100)");
  CHECK(phases() == Phases{{0, 1, 2, 3, 4, 5, 6}});
  builder.communicate("meets", "b[0]@1 - r <<= a[31]@r where r in world");
  CHECK(phases() == Phases{{0, 1, 2, 3, 4, 5, 6}, {7}});
}

TEST_CASE("however many elements statements that run together touch, each is told apart from the next") {
  PlanBuilder builder("p");
  constexpr int count = 20, share = 1 << 20;  // more than the 2^24 of one set that are told apart
  builder.buffer("a", Scalar::u8, {3 * count * share});
  for (int k = 0; k < count; ++k)
    builder.communicate(fmt::format("part{}", k),
                        fmt::format("a[3 * k + 1]@1 - r <<= a[3 * k]@r where r in world, k in range({}, {})", share * k,
                                    share * (k + 1)));
  CHECK(dry(builder.build(), 0, 2).phases.size() == 1);
}

TEST_CASE("fields of one record are the same element") {
  const auto overwrites = [](const char* statement) {
    PlanBuilder builder("p");
    builder.type("pair", record_of({{"x", Scalar::f64}, {"y", Scalar::f64}})).buffer("p", "pair", {4});
    builder.communicate("s", statement);
    return dry(builder.build(), 0, 2).statements[0].reads_what_it_writes;
  };
  CHECK(overwrites("p[3].y@0 <<= p[3].x@1, p[0]@1 <<= p[3]@0"));
  CHECK_FALSE(overwrites("p[2].y@0 <<= p[3].x@1, p[0]@1 <<= p[3]@0"));
}

TEST_CASE("a statement on one array overwrites what it reads only where elements meet") {
  const auto overwrites = [&](const char* statement) {
    return dry(plan_of(R"("a": {"type": "f64", "shape": [8, 70]})", statement), 0, 2)
        .statements[0]
        .reads_what_it_writes;
  };
  CHECK_FALSE(overwrites("a[0, j]@0 <<= a[6, j]@1 where j in range(70)"));
  CHECK_FALSE(overwrites("a[r * 7, j]@1 - r <<= a[r * 5 + 1, j]@r where r in world, j in range(70)"));
  CHECK(overwrites("a[r * 6, j]@1 - r <<= a[6 - r * 6, 69 - j]@r where r in world, j in range(70)"));
  CHECK(overwrites("a[7, j]@0 <<= a[k, 3]@0 where k in range(8), j in range(70), k == j / 9"));
}

TEST_CASE("a place assigned twice is an error that names both environments") {
  const Plan plan = plan_of(R"("a": {"type": "f64", "shape": [8]}, "b": {"type": "f64", "shape": [8]})",
                            "a[k / 2]@0 <<= b[k]@s where s in world, k in {0 ... 3}, s == 1");
  CHECK_THROWS_WITH(dry(plan, 0, 2), Catch::Contains("element 0 of `a` on rank 0 is assigned twice: from rank 1 when s "
                                                     "= 1, k = 0 and from rank 1 when s = 1, k = 1; if the last"));
}

TEST_CASE("knowledge is inferred with its reason") {
  const auto knowledge = [](const std::string& statement, const std::string& more = "") {
    const Plan plan = plan_of(
        R"("a": {"type": "f64", "shape": [8]}, "own": {"type": "i32", "shape": [8], "time": "fixed"}, "all": {"type": "i32", "shape": [8], "scope": "uniform", "time": "fixed"})",
        statement + "\"" + more + ", \"order\": \"any",
        R"(, "parameters": {"p": {"type": "i64", "scope": "private"}, "u": "i64", "v": {"type": "i64", "time": "varying"}})");
    return infer_knowledge(plan.model(), plan.model().statements[0]);
  };
  CHECK(knowledge("a[0]@u <<= a[0]@rank").knowledge == KnowledgeClass::global);
  CHECK(knowledge("a[0]@r <<= a[0]@0 where r in all").knowledge == KnowledgeClass::global);
  CHECK(knowledge("a[own[0]]@1 <<= a[own[1]]@0").knowledge == KnowledgeClass::global);  // where, not what
  CHECK(knowledge("a[0]@p <<= a[0]@rank").reason == "the receiver `p` depends on `p`, which is private");
  CHECK(knowledge("a[0]@own[0] <<= a[0]@rank").knowledge == KnowledgeClass::sender);
  CHECK(knowledge("a[0:p]@1 <<= a[0:p]@0").reason == "the number of elements of `a` depends on `p`, which is private");
  CHECK(knowledge("a[0]@rank <<= a[0]@p", ", \"direction\": \"pull\"").knowledge == KnowledgeClass::receiver);
  CHECK(knowledge("a[0]@p <<= a[0]@rank", ", \"knowledge\": \"corresponding\"").knowledge ==
        KnowledgeClass::corresponding);
  CHECK(knowledge("a[v]@1 <<= a[0]@0").is_varying);
}

TEST_CASE("a claim of other knowledge than is inferred is an error, at its place, that says what is inferred and why") {
  const auto told = [](const std::string& statement, const std::string& claim, const std::string& more = "") {
    const Plan plan = Plan::parse(R"({"kplan": 1, "name": "p", "parameters": {"p": {"type": "i64", "scope": "private"}},
 "buffers": {"a": {"type": "f64", "shape": [8]}}, "statements": [
  {"knowledge": ")" + claim + R"(", "communicate": ")" +
                                      statement + "\"" + more + "}]}",
                                  "claim.json");
    try {
      infer_knowledge(plan.model(), plan.model().statements[0]);
    } catch (const PlanError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string push = "a[0]@p <<= a[0]@rank", pull = "a[0]@rank <<= a[0]@p", known = "a[0]@1 <<= a[0]@0";
  const std::string is_pull = ", \"direction\": \"pull\"";
  CHECK(
      told(push, "receiver") ==
      "claim.json:3:17 /statements/0/knowledge: receiver knowledge is claimed, and statement 0 has sender knowledge: "
      "the receiver `p` depends on `p`, which is private; leave the claim out, or claim corresponding if both ends of "
      "each message know it [KP-A020]");
  CHECK(told(known, "sender", is_pull) ==
        "claim.json:3:17 /statements/0/knowledge: sender knowledge is claimed, and statement 0 has global knowledge: "
        "the ranks depend on nothing private; leave the claim out [KP-A020]");
  CHECK_THAT(told(push, "global"), Catch::Contains("has sender knowledge"));
  CHECK_THAT(told(pull, "sender", is_pull), Catch::Contains("has receiver knowledge"));
  CHECK_THAT(told(known, "receiver"), Catch::Contains("has global knowledge"));
  CHECK(told(push, "sender").empty());
  CHECK(told(pull, "receiver", is_pull).empty());
  CHECK(told(known, "global").empty());
  for (const std::string& any : {push, known}) CHECK(told(any, "corresponding").empty());
}

TEST_CASE("sets that would take forever are refused in bounded time") {
  const char* buffers = R"("a": {"type": "f64", "shape": [8]})";
  CHECK_THROWS_WITH(dry(plan_of(buffers, "a[k]@1 <<= a[k]@0 where k in {0 ... 9000000000000000000}"), 0, 2),
                    Catch::Contains("the range has more than 2^40 values") && Catch::Contains("[KP-P054]"));
  CHECK_THROWS_WITH(
      dry(plan_of(buffers,
                  "a[k % 8]@1 << sum << a[0]@0 where i in {0 ... 1000000}, j in {0 ... 1000000}, k in {0 ... 1000000}"),
          0, 2),
      Catch::Contains("[KP-A011]"));
  // No closed form, and far too many to look at one by one: as subscripts, as empty slices, and as claims.
  for (const char* statement : {"a[k * k % 8]@1 << sum << a[0]@0 where k in {0 ... 1000000000000}",
                                "a[k * k % 8 : 0]@1 << sum << a[k * k % 8 : 0]@0 where k in {0 ... 1000000000000}"})
    CHECK_THROWS_WITH(dry(plan_of(buffers, statement), 1, 2),
                      Catch::Contains("looked at one by one") && Catch::Contains("[KP-A011]"));
  CHECK_THROWS_WITH(
      dry(plan_of(buffers,
                  "a[k % 8]@1 << sum << a[0]@p where k in {0 ... 1000000000000}\", \"knowledge\": \"corresponding",
                  R"(, "parameters": {"p": {"type": "i64", "scope": "private", "default": 0}})"),
          0, 2),
      Catch::Contains("[KP-A011]"));
}
