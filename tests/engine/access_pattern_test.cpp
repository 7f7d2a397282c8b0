// Pieces: where the elements of a message lie.
#include "engine/analysis/access_pattern.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace kplan;

TEST_CASE("a list of runs of several lengths falls into pieces of equal runs, in order") {
  // A corner, a side of rows of 30, an edge of single elements one row apart, and a corner.
  Piece list;
  Words places;
  places.push_back(8);
  for (std::int64_t row = 0; row < 20; ++row)
    for (std::int64_t k = 0; k < 30; ++k) places.push_back(1000 + 320 * row + 8 * k);
  for (std::int64_t row = 0; row < 50; ++row) places.push_back(9000 + 320 * row);
  places.push_back(30000);
  list.list_length = static_cast<std::int64_t>(places.size());
  list.tracks = {{places, {}}, {{}, {}}};
  for (std::size_t k = 0; k < places.size(); ++k) list.tracks[1].bases.push_back(static_cast<std::int64_t>(8 * k));
  const std::vector<Piece> pieces = split_into_runs(list);
  REQUIRE(pieces.size() == 4);
  CHECK(pieces[1].counts == std::vector<std::int64_t>{20, 30});
  CHECK(pieces[2].counts == std::vector<std::int64_t>{50});
  Words walked, messages;
  for (const Piece& p : pieces) {
    walk(p, p.tracks[0], [&](std::int64_t place) { return walked.push_back(place), true; });
    walk(p, p.tracks[1], [&](std::int64_t place) { return messages.push_back(place), true; });
  }
  CHECK(walked == places);
  CHECK(messages == list.tracks[1].bases);
}

TEST_CASE("a list without long runs, or with very many, stays one piece") {
  for (const std::int64_t longest : {3, 9}) {
    Piece list;
    list.tracks = {{{}, {}}};
    for (std::int64_t run = 0, at = 0; run < 100; ++run, at += 100 + run * run)
      for (std::int64_t k = 0; k < 1 + run % longest; ++k) list.tracks[0].bases.push_back(at + 8 * k);
    list.list_length = static_cast<std::int64_t>(list.tracks[0].bases.size());
    CHECK(split_into_runs(list).empty());
  }
}

TEST_CASE("bases with one gap become a step, and nothing is walked otherwise") {
  const Words places{64, 0, 16, 96, 8}, regular{7, 5, 3, 1, -1};
  Piece p{5, {2}, {{places, {8}}, {regular, {0}}, {{9}, {1}}}};
  simplify(p);
  CHECK(p.tracks[0].bases == places);
  CHECK(p.tracks[1] == Track{{7}, {0}, -2});
  CHECK(p.tracks[2] == Track{{9}, {1}});
  CHECK(p.tracks[1].listed_bases(5) == regular);
  const Reach reach = reach_of(p, p.tracks[1]);
  CHECK((reach.lowest == -1 && reach.highest == 7));
  CHECK(part_of(p.tracks[1], 1, 3) == Track{{5}, {0}, -2});
  CHECK(part_of(p.tracks[0], 1, 3) == Track{{0, 16}, {8}});
  Piece more{1, {2}, {{{32}, {8}}, {{-3}, {0}}, {{9}, {1}}}};
  std::vector<Piece> pieces{p};
  append(pieces, more);
  REQUIRE(pieces.size() == 1);
  CHECK(pieces[0].tracks[1].bases == Words{7, 5, 3, 1, -1, -3});
  unfold_dimension(p);
  CHECK(p.tracks[1].bases == Words{7, 7, 5, 5, 3, 3, 1, 1, -1, -1});
}

TEST_CASE("words whose gaps are equal only because they wrap stay a list") {
  constexpr std::int64_t step = INT64_MAX / 3 * 2;
  Words words;
  for (std::uint64_t k = 0; k < 4; ++k) words.push_back(static_cast<std::int64_t>(k * std::uint64_t{step}));
  Piece p{4, {}, {{words, {}}, {{3, 1, 2, 5}, {}}}};
  simplify(p);
  CHECK(p.tracks[0].bases == words);
  const Reach reach = reach_of(p, p.tracks[0]);
  CHECK((reach.lowest == *std::ranges::min_element(words) && reach.highest == *std::ranges::max_element(words)));
}

TEST_CASE("sums that wrap reach as far as numbers do") {
  const auto reaches = [](const Piece& p, std::int64_t lowest, std::int64_t highest) {
    const Reach reach = reach_of(p, p.tracks[0]);
    return reach.lowest == lowest && reach.highest == highest;
  };
  constexpr std::int64_t half = std::int64_t{1} << 62;
  CHECK(reaches({1, {5}, {{{7}, {half}}}}, 7, INT64_MAX));
  CHECK(reaches({1, {5}, {{{7}, {-half}}}}, INT64_MIN, 7));
  CHECK(reaches({1, {2, 2, 2}, {{{7}, {half, half, -half}}}}, 7 - half, INT64_MAX));
  CHECK(reaches({5, {}, {{{7}, {}, half}}}, 7, INT64_MAX));
  CHECK(reaches({1, {INT64_MAX, INT64_MAX}, {{{7}, {INT64_MAX, INT64_MIN}}}}, INT64_MIN, INT64_MAX));
}

TEST_CASE("a track that grows is a list from the first gap that is another") {
  const auto grown = [](std::initializer_list<std::vector<std::int64_t>> parts) {
    GrowingTrack out;
    for (const auto& part : parts) out.append(part);
    return std::move(out).take();
  };
  CHECK(grown({{5}}) == Track{{5}, {}});
  CHECK(grown({{5}, {}, {8}, {11, 14}}) == Track{{5}, {}, 3});
  CHECK(grown({{4, 4}, {4}}) == Track{{4}, {}});
  CHECK(grown({{5, 8, 11}, {14, 18}, {22}}) == Track{{5, 8, 11, 14, 18, 22}, {}});
  CHECK(grown({{5, 4, 9}}) == Track{{5, 4, 9}, {}});
  CHECK(grown({{INT64_MIN}, {INT64_MAX}}) == Track{{INT64_MIN, INT64_MAX}, {}});
}
