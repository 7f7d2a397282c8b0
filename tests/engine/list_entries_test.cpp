#include "engine/lower/list_entries.hpp"

#include <catch2/catch.hpp>

using namespace kplan;

TEST_CASE("entries are numbers of elements from the lowest one on") {
  CHECK(entries_of({{40, 8, 4294967288 * 8 + 8, 16}, {}}, 4, 8, 8) == Unfilled<jit::ListEntry>{4, 0, 4294967288, 1});
  CHECK(entries_of({{24, 0, 240}, {}}, 3, 0, 24) == Unfilled<jit::ListEntry>{1, 0, 10});
  CHECK(entries_of({{48}, {}, -24}, 3, 0, 24) == Unfilled<jit::ListEntry>{2, 1, 0});
}

TEST_CASE("a list is cut where its entries cannot say how far it reaches") {
  constexpr std::int64_t far = std::int64_t{1} << 36;
  MessagePart part;
  part.piece.list_length = 6;
  part.piece.tracks = {{{0, 8, far, far + 8, far + 16, 0}, {}}, {{0}, {}, 8}, {{7}, {}}};
  const std::vector<ListedTrack> tracks{{&part.piece.tracks[0], 8, far}, {&part.piece.tracks[1], 8, 6}};
  const std::vector<std::int64_t> ends = list_ends(part.piece, tracks);
  CHECK(ends == std::vector<std::int64_t>{2, 5, 6});
  std::vector<Piece> parts;
  each_section(part, ends, [&](const MessagePart& section) { parts.push_back(section.piece); });
  REQUIRE(parts.size() == 3);
  CHECK(parts[1] == Piece{3, {}, {{{far, far + 8, far + 16}, {}}, {{16}, {}, 8}, {{7}, {}}}});
  CHECK(parts[2] == Piece{1, {}, {{{0}, {}}, {{40}, {}}, {{7}, {}}}});
}

TEST_CASE("a list whose buffer is short enough is not looked at") {
  Piece piece;
  piece.list_length = 3;
  piece.tracks = {{{0, 8, 16}, {}}};
  CHECK(list_ends(piece, {{&piece.tracks[0], 8, 3}}) == std::vector<std::int64_t>{3});
  CHECK(list_ends(piece, {{&piece.tracks[0], 8, std::int64_t{1} << 40}}) == std::vector<std::int64_t>{3});
}
