#include "engine/lower/loop_order.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace kplan;

namespace {

/// Two faces of a field of n^3 with ghosts of the given width, of elements of 8 bytes, and their message.
Piece faces(std::int64_t n, std::int64_t width) {
  const std::int64_t row = 8 * (n + 2 * width), plane = row * (n + 2 * width);
  return {1,
          {2, n, n, width},
          {{{width * (plane + row + 8)}, {8 * (n - width), plane, row, 8}},
           {{0}, {8 * n * n * width, 8 * n * width, 8 * width, 8}}}};
}

std::vector<std::pair<std::int64_t, std::int64_t>> moves(const Piece& piece) {
  std::vector<std::int64_t> from, to;
  walk(piece, piece.tracks[0], [&](std::int64_t at) { return from.push_back(at), true; });
  walk(piece, piece.tracks[1], [&](std::int64_t at) { return to.push_back(at), true; });
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (std::size_t k = 0; k < from.size(); ++k) out.emplace_back(from[k], to[k]);
  std::ranges::sort(out);
  return out;
}

}  // namespace

TEST_CASE("two faces whose rows end and begin on one cache line are walked plane by plane") {
  for (const std::int64_t width : {1, 2}) {
    Piece piece = faces(20, width);
    const auto expected = moves(piece);
    CHECK(walk_shared_lines_together(piece, 1, 8, false));
    CHECK(piece.counts == std::vector<std::int64_t>{20, 2, 20, width});
    CHECK(moves(piece) == expected);
  }
}

TEST_CASE("two such faces that are written are walked row by row, what is side by side one after the other") {
  for (const std::int64_t width : {1, 2}) {
    for (const bool is_far_face_first : {false, true}) {
      Piece piece = faces(20, width);
      if (is_far_face_first) {
        for (Track& t : piece.tracks) {
          t.bases[0] += t.strides[0];
          t.strides[0] = -t.strides[0];
        }
      }
      const auto expected = moves(piece);
      CHECK(walk_shared_lines_together(piece, 1, 8, true));
      CHECK(piece.counts == std::vector<std::int64_t>{20, 20, 2, width});
      CHECK(piece.tracks[0].strides[2] == 8 * (20 - width));
      CHECK(moves(piece) == expected);
    }
  }
}

TEST_CASE("loops that share no cache lines, or make long rows, stay as they are") {
  const Piece wide = faces(20, 9);
  Piece apart = faces(20, 1);
  apart.tracks[0].strides[0] = 80;
  Piece listed = faces(20, 1);
  listed.list_length = 2;
  for (const Piece& piece : {wide, apart, listed, Piece{1, {2, 20}, {{{0}, {8, 160}}, {{0}, {160, 8}}}}}) {
    Piece walked = piece;
    CHECK_FALSE(walk_shared_lines_together(walked, 1, 8, true));
    CHECK(walked == piece);
  }
}
