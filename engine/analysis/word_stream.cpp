#include "engine/analysis/word_stream.hpp"

#include <cstring>

#include "kplan/error.hpp"

namespace kplan {
namespace {

[[noreturn]] void fail() {
  throw TransportError("KP-T012", "a description of elements has come damaged; do all ranks run one build?");
}

}  // namespace

void WordWriter::words(const std::int64_t* v, std::size_t count) {
  const auto* from = reinterpret_cast<const std::byte*>(v);
  bytes_.insert(bytes_.end(), from, from + 8 * count);
}

void WordWriter::list(const std::vector<std::int64_t>& v) {
  word(static_cast<std::int64_t>(v.size()));
  words(v.data(), v.size());
}

void WordWriter::piece(const Piece& piece) {
  word(piece.list_length);
  list(piece.counts);
  word(static_cast<std::int64_t>(piece.tracks.size()));
  for (const Track& track : piece.tracks) {
    list(track.bases);
    list(track.strides);
  }
}

std::int64_t WordReader::word() {
  std::int64_t out = 0;
  take(&out, 1);
  return out;
}

std::size_t WordReader::count() {
  const std::int64_t out = word();
  if (out < 0 || static_cast<std::size_t>(out) > bytes_.size() / 8) fail();
  return static_cast<std::size_t>(out);
}

std::vector<std::int64_t> WordReader::list() {
  std::vector<std::int64_t> out(count());
  take(out.data(), out.size());
  return out;
}

Piece WordReader::piece() {
  Piece out;
  out.list_length = word();
  out.counts = list();
  out.tracks.resize(count());
  for (Track& track : out.tracks) {
    track.bases = list();
    track.strides = list();
  }
  return out;
}

void WordReader::take(std::int64_t* to, std::size_t words) {
  if (words > bytes_.size() / 8) fail();
  if (words > 0) std::memcpy(to, bytes_.data(), 8 * words);
  bytes_ = bytes_.subspan(8 * words);
}

}  // namespace kplan
