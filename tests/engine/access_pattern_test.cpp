// Pieces: where the elements of a message lie.
#include "engine/analysis/access_pattern.hpp"

#include <catch2/catch.hpp>

using namespace kplan;

TEST_CASE("a list of runs of several lengths falls into pieces of equal runs, in order") {
  // A corner, a side of rows of 30, an edge of single elements one row apart, and a corner.
  Piece list;
  std::vector<std::int64_t> places;
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
  std::vector<std::int64_t> walked, messages;
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
