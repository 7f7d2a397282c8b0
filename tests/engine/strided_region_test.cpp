// Regions: which tracks are seen to lie apart.
#include "engine/analysis/strided_region.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>

using namespace kplan;

namespace {

/// A nest from `base` on.
StridedRegion nest(std::int64_t base, std::vector<std::int64_t> counts, std::vector<std::int64_t> strides,
                   std::int64_t element_bytes = 8) {
  Piece piece{1, std::move(counts), {{{base}, std::move(strides)}}};
  return {piece, piece.tracks[0], element_bytes};
}

std::set<std::int64_t> bytes_of(const Piece& piece, std::int64_t element_bytes) {
  std::set<std::int64_t> out;
  walk(piece, piece.tracks[0], [&](std::int64_t at) {
    for (std::int64_t k = 0; k < element_bytes; ++k) out.insert(at + k);
    return true;
  });
  return out;
}

}  // namespace

TEST_CASE("faces, ghosts and columns are seen to lie apart, whatever lies between their elements") {
  // A block of 10 x 10 x 10 f64: planes are 800 bytes apart, rows 80.
  const StridedRegion low_x = nest(888, {8, 8}, {80, 8}), ghost_x = nest(88, {8, 8}, {80, 8});
  const StridedRegion low_y = nest(888, {8, 8}, {800, 8}), ghost_y = nest(808, {8, 8}, {800, 8});
  const StridedRegion low_z = nest(888, {8, 8}, {800, 80}), ghost_z = nest(880, {8, 8}, {800, 80});
  CHECK(are_surely_apart({ghost_x, ghost_y, ghost_z}));
  CHECK(are_surely_apart(std::vector{low_x, low_y, low_z}, std::vector{ghost_x, ghost_y, ghost_z}));
  CHECK_FALSE(low_x.is_surely_apart_from(low_y));
  CHECK_FALSE(are_surely_apart({low_x, low_y, low_z}));
  // Both faces as one nest, and both ghosts, the higher one first.
  CHECK(nest(888, {2, 8, 8}, {56, 800, 80}).is_surely_apart_from(nest(952, {2, 8, 8}, {-72, 800, 80})));
  CHECK_FALSE(nest(888, {2, 8, 8}, {64, 800, 80}).is_surely_apart_from(nest(952, {2, 8, 8}, {-72, 800, 80})));
  // Walked backwards.
  CHECK(nest(888 + 7 * 800, {8, 8}, {-800, 80}).is_surely_apart_from(ghost_z));
  // Columns of a matrix in turn, and with one in common.
  CHECK(nest(0, {64, 3}, {64, 8}).is_surely_apart_from(nest(24, {64, 5}, {64, 8})));
  CHECK_FALSE(nest(0, {64, 4}, {64, 8}).is_surely_apart_from(nest(24, {64, 5}, {64, 8})));
  CHECK_FALSE(
      nest(40, {64, 4}, {64, 8}).is_surely_apart_from(nest(0, {64, 1}, {64, 8})));  // it goes on in the next row
}

TEST_CASE("fields of records lie apart, and their records do not") {
  const StridedRegion first = nest(0, {9}, {24}), last = nest(16, {9}, {24});
  CHECK(first.is_surely_apart_from(last));
  CHECK_FALSE(first.whole_elements(24).is_surely_apart_from(last.whole_elements(24)));
  CHECK(last.whole_elements(24).lowest() == 0);
  CHECK(last.whole_elements(24).highest() == 9 * 24);
}

TEST_CASE("lists are apart by how far they reach only, and sums that wrap never") {
  const Piece list{3, {}, {{{0, 64, 32}, {}}}};
  const StridedRegion listed(list, list.tracks[0], 8);
  CHECK(listed.is_surely_apart_from(nest(72, {4}, {8})));
  CHECK_FALSE(listed.is_surely_apart_from(nest(8, {3}, {32})));
  CHECK_FALSE(nest(0, {1 << 20, 2}, {INT64_MAX / 4, 16}).is_surely_apart_from(nest(8, {2}, {16})));
}

TEST_CASE("many regions that reach into each other are not looked at pair by pair") {
  std::vector<StridedRegion> regions;
  for (std::int64_t k = 0; k < 200; ++k) regions.push_back(nest(8 * k, {100}, {1600}));
  CHECK_FALSE(are_surely_apart(regions));
  CHECK_FALSE(are_surely_apart(regions, std::vector(200, nest(0, {2}, {8}))));
  regions.erase(regions.begin() + 90, regions.end());
  CHECK(are_surely_apart(regions));
}

TEST_CASE("regions that are seen to lie apart have no byte in common") {
  std::mt19937 random(7);
  const auto between = [&](int lo, int hi) { return std::uniform_int_distribution(lo, hi)(random); };
  const auto draw = [&] {
    Piece piece{between(1, 3), {}, {{{between(0, 60)}, {}, between(-20, 20)}}};
    for (int d = between(0, 3); d > 0; --d) {
      piece.counts.push_back(between(1, 4));
      piece.tracks[0].strides.push_back(between(0, 3) * between(-8, 8));
    }
    return piece;
  };
  int apart = 0, not_by_reach = 0;
  for (int n = 0; n < 20000; ++n) {
    const Piece a = draw(), b = draw();
    const std::int64_t a_bytes = between(1, 4), b_bytes = between(1, 4);
    const StridedRegion x(a, a.tracks[0], a_bytes), y(b, b.tracks[0], b_bytes);
    if (!x.is_surely_apart_from(y)) continue;
    ++apart;
    not_by_reach += x.highest() > y.lowest() && y.highest() > x.lowest() ? 1 : 0;
    const std::set<std::int64_t> of_a = bytes_of(a, a_bytes), of_b = bytes_of(b, b_bytes);
    std::set<std::int64_t> both = of_a;
    both.insert(of_b.begin(), of_b.end());
    REQUIRE(both.size() == of_a.size() + of_b.size());
  }
  CHECK(apart > 1000);
  CHECK(not_by_reach > 100);
}
