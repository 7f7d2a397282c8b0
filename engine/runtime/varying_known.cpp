// How it works: what a run does for a varying pattern that both ends have worked out. Each finds what it sends and what
// it is to be sent, and compares that with what comes; once all ranks have agreed that a pattern is right
// (known_patterns.hpp), only those wait for each other that have messages.
#include <algorithm>
#include <cstring>

#include "engine/runtime/varying_statement.hpp"
#include "engine/schedule/ends.hpp"

namespace kplan {

/// Packs messages that their receivers expect straight into the letters.
[[gnu::hot]] void VaryingStatement::send_known(const RunContext& context) {
  StatementProgram& program = make_sending(context);
  for (std::size_t k = 0; k < program.outgoing.size(); ++k) {
    OutgoingMessage& m = program.outgoing[k];
    if (now_->schedule.sends[k].element_count == 0) continue;
    PatternHeader header;
    header.head.uniform_hash = uniform_hash_;
    header.payload_offset_bytes = sizeof header;
    header.element_count = now_->schedule.sends[k].element_count;
    header.digest = now_->schedule.sends[k].digest;
    const std::size_t bytes = sizeof header + m.bytes;
    const auto to = static_cast<int>(m.world_rank);
    std::byte* const letter = room(*first_, k, to, bytes);
    std::memcpy(letter, &header, sizeof header);
    for (ReadyCall& call : m.calls)
      if (call(context.memory, letter + sizeof header) != 0)
        context.notes.note_zero_divisor(static_cast<int>(number_), call, true);
    outgoing_.push_back({to, {letter, bytes}});
  }
}

/// Where both ends have worked out the message, they must have found the same.
[[gnu::hot]] void VaryingStatement::compare_ends() const {
  const auto expect = [&](const Message* mine, std::int64_t peer) {
    const Arrived* const arrived = arrived_from(peer);
    const std::int64_t sent = arrived ? arrived->element_count : 0;
    const std::int64_t expected = mine ? mine->element_count : 0;
    if (sent == expected && (sent == 0 || arrived->digest == mine->digest)) return;
    throw ends_differ(*now_->bound->model, statement_, now_->schedule.world_rank_of(peer), rank_, sent, expected);
  };
  for (const Message& m : now_->schedule.receives) expect(&m, m.peer);
  for (const Arrived& arrived : arrived_)
    if (std::ranges::find(now_->schedule.receives, arrived.from, &Message::peer) == now_->schedule.receives.end())
      expect(nullptr, arrived.from);
}

/// Those that this rank receives from are known, and they know of it.
[[gnu::hot]] void VaryingStatement::begin_settled() {
  sources_.clear();
  if (failure_) outgoing_.clear();
  else
    for (const Message& m : now_->schedule.receives)
      if (m.element_count > 0) sources_.push_back(static_cast<int>(now_->schedule.world_rank_of(m.peer)));
  std::ranges::sort(sources_);
  first_->begin(outgoing_, sources_);
}

/// A rank that has found something wrong tells all others so.
void VaryingStatement::begin_settling() {
  sent_->head = {LetterKind::head, uniform_hash_};
  outgoing_.clear();
  for (int r = 0; failure_ && r < size_; ++r)
    if (r != rank_) outgoing_.push_back({r, std::as_bytes(std::span(&sent_->head, 1))});
  second_->begin(outgoing_);
}

}  // namespace kplan
