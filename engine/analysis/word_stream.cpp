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

void WordWriter::list(std::span<const std::int64_t> v) {
  const std::int64_t* const from = v.data();
  const std::size_t size = v.size();
  std::uint64_t beyond = 0;  // not zero: some word needs more than 32 bits
  for (std::size_t k = 0; k < size; ++k)
    beyond |= (static_cast<std::uint64_t>(from[k]) + (std::uint64_t{1} << 31)) >> 32;
  const bool is_narrow = beyond == 0;
  word(static_cast<std::int64_t>(2 * size + (is_narrow ? 1 : 0)));
  if (!is_narrow) return words(from, size);
  const std::size_t at = bytes_.size();
  bytes_.resize(at + 4 * size);
  bytes_.resize(at + (size + 1) / 2 * 8, std::byte{});
  std::byte* const to = bytes_.data() + at;
  for (std::size_t k = 0; k < size; ++k) {
    const auto narrow = static_cast<std::int32_t>(from[k]);
    std::memcpy(to + 4 * k, &narrow, 4);
  }
}

void WordWriter::piece(const Piece& piece) {
  word(piece.list_length);
  list(piece.counts);
  word(static_cast<std::int64_t>(piece.tracks.size()));
  for (const Track& track : piece.tracks) {
    list(track.bases);
    list(track.strides);
    word(track.step);
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

template <class List>
List WordReader::list() {
  const std::int64_t head = word();
  if (head < 0) fail();
  const auto size = static_cast<std::size_t>(head) / 2;
  if (size > bytes_.size() / 4) fail();
  const std::span<const std::byte> from = bytes_;
  if (head % 2 == 0) {
    List out(size);
    take(out.data(), size);
    return out;
  }
  skip((size + 1) / 2);
  List out(size);
  std::int64_t* const to = out.data();
  for (std::size_t k = 0; k < size; ++k) {
    std::int32_t v = 0;
    std::memcpy(&v, from.data() + 4 * k, 4);
    to[k] = v;
  }
  return out;
}

Piece WordReader::piece() {
  Piece out;
  out.list_length = word();
  out.counts = list<decltype(out.counts)>();
  out.tracks.resize(count());
  for (Track& track : out.tracks) {
    track.bases = list<decltype(track.bases)>();
    track.strides = list<decltype(track.strides)>();
    track.step = word();
    const bool is_whole = track.strides.size() == out.counts.size() &&
                          (track.bases.size() == 1 || std::cmp_equal(track.bases.size(), out.list_length));
    if (!is_whole) fail();
  }
  return out;
}

void WordReader::take(std::int64_t* to, std::size_t words) {
  const std::span<const std::byte> from = bytes_;
  skip(words);
  if (words > 0) std::memcpy(to, from.data(), 8 * words);
}

void WordReader::skip(std::size_t words) {
  if (words > bytes_.size() / 8) fail();
  bytes_ = bytes_.subspan(8 * words);
}

}  // namespace kplan
