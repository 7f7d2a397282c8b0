#include "engine/analysis/word_stream.hpp"

#include <catch2/catch.hpp>

#include "kplan/error.hpp"

using namespace kplan;

namespace {

Unfilled<std::byte> written(const Piece& piece) {
  Unfilled<std::byte> out;
  WordWriter(out).piece(piece);
  return out;
}

}  // namespace

TEST_CASE("pieces come as they were sent, in narrow words where all of a list fit") {
  constexpr std::int64_t most = INT32_MAX, far = std::int64_t{1} << 40;
  const Piece narrow{3, {2, 5}, {{{most, -most - 1, 7}, {0, 8}}, {{-9}, {1, 2}, far}}};
  Piece wide = narrow;
  wide.tracks[0].bases[2] = most + 1;
  for (const Piece& piece : {narrow, wide, Piece{1, {}, {}}, Piece{1, {}, {{{far}, {}}}}}) {
    const Unfilled<std::byte> bytes = written(piece);
    CHECK(bytes.size() % 8 == 0);
    std::span<const std::byte> rest = bytes;
    CHECK(WordReader(rest).piece() == piece);
    CHECK(rest.empty());
  }
  CHECK(written(wide).size() == written(narrow).size() + 8);
}

TEST_CASE("a piece that was cut short, or whose lists do not fit together, is an error") {
  const Piece piece{3, {2}, {{{1, 5, 7}, {8}}}};
  const Unfilled<std::byte> bytes = written(piece);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::span<const std::byte> rest = std::span(bytes).first(size);
    CHECK_THROWS_AS(WordReader(rest).piece(), TransportError);
  }
  for (const Piece& wrong : {Piece{4, {2}, piece.tracks}, Piece{3, {2, 2}, piece.tracks}}) {
    const Unfilled<std::byte> letter = written(wrong);
    std::span<const std::byte> rest = letter;
    CHECK_THROWS_AS(WordReader(rest).piece(), TransportError);
  }
}
