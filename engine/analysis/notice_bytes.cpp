#include "engine/analysis/notice_bytes.hpp"

#include <cstring>

#include "kplan/error.hpp"

namespace kplan {
namespace {

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  void word(std::int64_t v) { words(&v, 1); }
  void words(const std::int64_t* v, std::size_t count) {
    const auto* from = reinterpret_cast<const std::byte*>(v);
    bytes_.insert(bytes_.end(), from, from + 8 * count);
  }
  void list(const std::vector<std::int64_t>& v) {
    word(static_cast<std::int64_t>(v.size()));
    words(v.data(), v.size());
  }

 private:
  std::vector<std::byte>& bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte>& bytes) : bytes_(bytes) {}
  std::int64_t word() {
    std::int64_t out = 0;
    take(&out, 1);
    return out;
  }
  /// A number of things that follow, each of at least 8 bytes.
  std::size_t count() {
    const std::int64_t out = word();
    if (out < 0 || static_cast<std::size_t>(out) > bytes_.size() / 8) fail();
    return static_cast<std::size_t>(out);
  }
  std::vector<std::int64_t> list() {
    std::vector<std::int64_t> out(count());
    take(out.data(), out.size());
    return out;
  }

 private:
  void take(std::int64_t* to, std::size_t words) {
    if (words > bytes_.size() / 8) fail();
    if (words > 0) std::memcpy(to, bytes_.data(), 8 * words);
    bytes_ = bytes_.subspan(8 * words);
  }
  [[noreturn]] static void fail() {
    throw TransportError("KP-T012", "a notice of where-bound values has come damaged; do all ranks run one build?");
  }
  std::span<const std::byte>& bytes_;
};

}  // namespace

void append_notice(int statement, const Notice& notice, std::vector<std::byte>& bytes) {
  Writer out(bytes);
  out.word(statement);
  out.word(static_cast<std::int64_t>(notice.parts.size()));
  for (const Notice::Part& part : notice.parts) {
    out.word(part.reduction);
    out.word(static_cast<std::int64_t>(part.environments.size()));
    for (const Piece& piece : part.environments) {
      out.word(piece.list_length);
      out.list(piece.counts);
      out.word(static_cast<std::int64_t>(piece.tracks.size()));
      for (const Track& track : piece.tracks) {
        out.list(track.bases);
        out.list(track.strides);
      }
    }
  }
}

NumberedNotice take_notice(std::span<const std::byte>& bytes, std::int64_t peer) {
  Reader in(bytes);
  NumberedNotice out;
  out.statement = static_cast<int>(in.word());
  out.notice.peer = peer;
  out.notice.parts.resize(in.count());
  for (Notice::Part& part : out.notice.parts) {
    part.reduction = static_cast<int>(in.word());
    part.environments.resize(in.count());
    for (Piece& piece : part.environments) {
      piece.list_length = in.word();
      piece.counts = in.list();
      piece.tracks.resize(in.count());
      for (Track& track : piece.tracks) {
        track.bases = in.list();
        track.strides = in.list();
      }
    }
  }
  return out;
}

}  // namespace kplan
