// Elements in cells: the same ones, whatever their order, and plans that move some components of each cell.
#include "engine/lower/cells.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "random_plan.hpp"

using namespace kplan;

namespace {

constexpr std::array<std::int64_t, 2> doubles{8, 8};

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Where elements of the first two tracks lie, in no order.
Pairs pairs_of(const Piece& piece, const Distances& distances) {
  Pairs out;
  each_entry(piece, [&](const std::vector<std::int64_t>& at) {
    for (std::size_t c = 0; c < distances[0].size(); ++c)
      out.emplace_back(at[0] + distances[0][c], at[1] + distances[1][c]);
    return true;
  });
  std::ranges::sort(out);
  return out;
}
Pairs pairs_of(const Piece& piece) { return pairs_of(piece, {{0}, {0}}); }

/// The components of each cell, one cell after the other, as a list beside a message of doubles.
Piece listed(const Words& cells, const Words& components) {
  Piece out;
  out.tracks = {{}, {{0}, {}, 8}};
  for (const std::int64_t cell : cells)
    for (const std::int64_t c : components) out.tracks[0].bases.push_back(cell + c);
  out.list_length = static_cast<std::int64_t>(out.tracks[0].bases.size());
  return out;
}

}  // namespace

TEST_CASE("components that a list names once for all cells are moved cell by cell") {
  // Of 19 doubles a cell, five; the message has one after the other of all cells.
  Piece piece{5, {30, 40}, {{{8, 104, 72, 56, 88}, {152 * 60, 152}}, {{0}, {320, 8}, 9600}}};
  const auto cells = cells_of(piece, doubles);
  REQUIRE(cells);
  CHECK(cells->piece.list_length == 1);
  CHECK(cells->piece.tracks[0].bases == Words{8});
  CHECK(cells->distances == Distances{{0, 96, 64, 48, 80}, {0, 9600, 19200, 28800, 38400}});
  CHECK(pairs_of(cells->piece, cells->distances) == pairs_of(piece));

  SECTION("not where they lie beyond the next cell") {
    piece.tracks[0].bases[1] = 160;
    CHECK_FALSE(cells_of(piece, doubles));
  }
  SECTION("not where there are many, or few elements") {
    CHECK_FALSE(cells_of({2, {15}, {{{0, 16}, {152}}, {{0}, {8}, 120}}}, doubles));
    CHECK(cells_of({2, {16}, {{{0, 16}, {152}}, {{0}, {8}, 128}}}, doubles));
    Words many;
    for (std::int64_t c = 0; c < 9; ++c) many.push_back(16 * c * c / 9 * 8);
    CHECK_FALSE(cells_of({9, {40}, {{many, {1600}}, {{0}, {8}, 320}}}, doubles));
  }
}

TEST_CASE("components that a list names for each cell are moved cell by cell, with a shorter list or none") {
  Words rows, scattered;
  for (std::int64_t y = 0; y < 10; ++y)
    for (std::int64_t z = 0; z < 12; ++z) rows.push_back(9000 * y + 152 * z);
  std::minstd_rand random(5);
  for (std::int64_t k = 0; k < 200; ++k) scattered.push_back(static_cast<std::int64_t>(random() % 1000) * 152);
  const Words components{40, 8, 16, 144};

  const Piece in_rows = listed(rows, components);
  const auto of_rows = cells_of(in_rows, doubles);
  REQUIRE(of_rows);
  CHECK(of_rows->piece.list_length == 1);
  CHECK(of_rows->piece.counts == std::vector<std::int64_t>{10, 12});
  CHECK(of_rows->distances == Distances{{32, 0, 8, 136}, {0, 8, 16, 24}});
  CHECK(pairs_of(of_rows->piece, of_rows->distances) == pairs_of(in_rows));

  Piece anywhere = listed(scattered, components);
  const auto of_anywhere = cells_of(anywhere, doubles);
  REQUIRE(of_anywhere);
  CHECK(of_anywhere->piece.list_length == 200);
  CHECK(pairs_of(of_anywhere->piece, of_anywhere->distances) == pairs_of(anywhere));

  SECTION("not where one cell is another") {
    anywhere.tracks[0].bases[777] += 8;
    CHECK_FALSE(cells_of(anywhere, doubles));
  }
  SECTION("not what has no components in common") {
    std::ranges::shuffle(anywhere.tracks[0].bases, random);
    CHECK_FALSE(cells_of(anywhere, doubles));
  }
}

TEST_CASE("some components of every cell come to their places") {
  using namespace kplan::test;
  for (const char* type : {"f64", "i8", "u16", "f32", "c128"}) {
    for (const std::string where : {"q in {1, 4, 2, 6}, y in range(1, 8), z in range(1, 9)",
                                    "y in range(1, 8), z in range(1, 9), q in {1, 4, 2, 6}",
                                    "y in range(0, 10), z in range(0, 10), q in {5, 0}"}) {
      for (const std::string to : {"rank", "(rank + 1) % size"}) {
        RandomPlan plan;
        plan.ranks = 2;
        plan.data_seed = 3;
        plan.buffers = {{"f", type, {10, 10, 7}, {}, "", false, false}, {"g", type, {10, 10, 7}, {}, "", false, false}};
        RandomStatement there, sums;
        there.clauses = {where};
        there.reductions = {{"f[z, y, q]", to, "assign", "g[y, z, q]", "rank"}};
        sums = there;
        sums.reductions = {{"g[y, z, q]", to, "sum", "f[y, z, q]", "rank"}};
        plan.statements = {there, sums};
        const Outcome outcome = compare_with_reference(plan, 3);
        INFO(plan.to_json() << "\n" << outcome.what);
        CHECK(outcome.kind == Outcome::Kind::identical);
      }
    }
  }
}
