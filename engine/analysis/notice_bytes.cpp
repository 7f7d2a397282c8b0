#include "engine/analysis/notice_bytes.hpp"

#include "engine/analysis/word_stream.hpp"

namespace kplan {

void append_notice(int statement, const Notice& notice, Unfilled<std::byte>& bytes) {
  WordWriter out(bytes);
  out.word(statement);
  out.word(static_cast<std::int64_t>(notice.parts.size()));
  for (const Notice::Part& part : notice.parts) {
    out.word(part.reduction);
    out.word(static_cast<std::int64_t>(part.environments.size()));
    for (const Piece& piece : part.environments) out.piece(piece);
  }
}

NumberedNotice take_notice(std::span<const std::byte>& bytes, std::int64_t peer) {
  WordReader in(bytes);
  NumberedNotice out;
  out.statement = static_cast<int>(in.word());
  out.notice.peer = peer;
  out.notice.parts.resize(in.count());
  for (Notice::Part& part : out.notice.parts) {
    part.reduction = static_cast<int>(in.word());
    part.environments.resize(in.count());
    for (Piece& piece : part.environments) piece = in.piece();
  }
  return out;
}

}  // namespace kplan
