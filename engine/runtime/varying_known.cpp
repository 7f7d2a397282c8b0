// How it works: what a run does for a varying pattern that both ends have worked out. Each finds what it sends and what
// it is to be sent, and compares that with what comes; once all ranks have agreed that a pattern is right
// (known_patterns.hpp), only those wait for each other that have messages.
#include <algorithm>

#include "engine/runtime/varying_statement.hpp"
#include "engine/schedule/ends.hpp"

namespace kplan {

/// Packs messages that their receivers expect straight into the letters.
[[gnu::hot]] void VaryingStatement::send_known(const RunContext& context) {
  StatementProgram& program = make_sending(context);
  for (std::size_t k = 0; k < program.outgoing.size(); ++k) {
    OutgoingMessage& m = program.outgoing[k];
    if (now_->schedule.sends[k].element_count == 0) continue;
    const auto to = static_cast<int>(m.world_rank);
    std::byte* const letter = letters_.add(*first_, to, message_letter_bytes(m.bytes));
    std::byte* const message = begin_message_letter(letter, uniform_hash_, &now_->schedule.sends[k]);
    context.pack(m.calls, message, static_cast<int>(number_));
  }
}

/// Where both ends have worked out the message, they must have found the same.
[[gnu::hot]] void VaryingStatement::compare_ends() const {
  const auto expect = [&](const Message* mine, std::int64_t peer) {
    const ArrivedPattern* const arrived = arrived_from(peer);
    const std::int64_t sent = arrived ? arrived->element_count : 0;
    const std::int64_t expected = mine ? mine->element_count : 0;
    if (sent == expected && (sent == 0 || arrived->digest == mine->digest)) return;
    throw ends_differ(*now_->bound->model, statement_, now_->schedule.world_rank_of(peer), rank_, sent, expected);
  };
  for (const Message& m : now_->schedule.receives) expect(&m, m.peer);
  for (const ArrivedPattern& arrived : arrived_)
    if (std::ranges::find(now_->schedule.receives, arrived.from, &Message::peer) == now_->schedule.receives.end())
      expect(nullptr, arrived.from);
}

/// Those that this rank receives from are known, and they know of it.
[[gnu::hot]] void VaryingStatement::begin_settled() {
  sources_.clear();
  if (failure_) letters_.clear();
  else
    for (const Message& m : now_->schedule.receives)
      if (m.element_count > 0) sources_.push_back(static_cast<int>(now_->schedule.world_rank_of(m.peer)));
  std::ranges::sort(sources_);
  first_->begin(letters_.list(), sources_);
}

/// A rank that has found something wrong tells all others so.
void VaryingStatement::begin_settling() {
  letters_.clear();
  if (failure_) letters_.add_heads(others(), uniform_hash_);
  second_->begin(letters_.list());
}

}  // namespace kplan
