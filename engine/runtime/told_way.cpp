#include "engine/runtime/told_way.hpp"

namespace kplan {

ToldWay::ToldWay(const BoundPlan& bound, std::size_t number)
    : number_(number),
      knowledge_(infer_knowledge(*bound.model, bound.model->statements[number])),
      is_pull_(bound.model->statements[number].is_pull) {}

[[gnu::hot]] void ToldWay::clear() {
  draft_.reset();
  found_.bound.reset();
  arrived_.clear();
}

void ToldWay::begin_draft(const RunContext& context) {
  found_.bound.reset();
  draft_ = draft_statement(context.bound, number_, knowledge_);
  found_.bound = draft_->bound;
  found_.schedule = draft_->schedule;
}

[[gnu::hot]] void ToldWay::send(const RunContext& context, const Outbox& to) {
  clear();
  begin_draft(context);
  StatementSchedule& schedule = found_.schedule;
  if (schedule.size == 0) return;
  if (!is_pull_) schedule.sends = sent_messages(*draft_), schedule.values = draft_->pattern.values;
  for (const Notice& notice : draft_->notices) {
    if (notice.peer == schedule.rank) continue;
    add_notice(to.letters.grown(schedule.world_rank_of(notice.peer)), static_cast<int>(number_), notice);
  }
  if (!is_pull_) pack(context, to.letters);
}

/// Adds the pattern's messages to the letters.
void ToldWay::pack(const RunContext& context, SentLetters& letters) {
  found_.make_sending(context, Reuse::kernels);
  for (std::size_t k = 0; k < found_.sending->outgoing.size(); ++k) {
    OutgoingMessage& m = found_.sending->outgoing[k];
    std::byte* const message = add_message(letters.grown(m.world_rank), found_.schedule.sends[k], m.bytes);
    context.pack(m.calls, message);
  }
}

[[gnu::hot]] void ToldWay::take_letter(LetterKind kind, const transport::ReceivedLetter& letter) {
  if (kind != LetterKind::pattern) fail_damaged_letter();
  add(letter, *found_.bound);
}

[[gnu::hot]] void ToldWay::add(const transport::ReceivedLetter& letter, const BoundPlan& bound) {
  arrived_.add(read_pattern_letter(letter.bytes, bound.number_of(letter.from)));
}

[[gnu::hot]] void ToldWay::take(const RunContext& context) {
  arrived_.order();
  if (found_.schedule.size == 0) return;
  finish(context, arrived_.take_notices());
}

void ToldWay::take_notices(const RunContext& context, std::vector<Notice> told) {
  begin_draft(context);
  finish(context, std::move(told));
}

void ToldWay::finish(const RunContext& context, std::vector<Notice> told) {
  found_.schedule = finish_statement(std::move(*draft_), std::move(told));
  found_.make_receiving(context, Reuse::kernels);
  found_.stage(context);
}

/// Everyone that has asked, if with nothing.
void ToldWay::answer(const RunContext& context, std::span<const int> requesters, const Outbox& to) {
  arrived_.clear();
  for (const int rank : requesters) begin_pattern_letter(to.letters.grown(rank));
  if (found_.schedule.size > 0) pack(context, to.letters);
}

}  // namespace kplan
