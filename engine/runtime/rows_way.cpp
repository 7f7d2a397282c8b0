#include "engine/runtime/rows_way.hpp"

#include <algorithm>

namespace kplan {

RowsWay::RowsWay(const BoundPlan& bound, std::size_t number, std::shared_ptr<RowStatement> rows)
    : is_pull_(bound.model->statements[number].is_pull),
      is_told_(is_told(infer_knowledge(*bound.model, bound.model->statements[number]))),
      rows_(std::move(rows)),
      general_(bound, number) {}

[[gnu::hot]] void RowsWay::send(const RunContext& context, const Outbox& to) {
  general_.clear();
  came_.clear();
  is_by_rows_ = false;
  rows_->send(context.bound.state, context.memory, to);
}

[[gnu::hot]] void RowsWay::take_letter(LetterKind kind, const transport::ReceivedLetter& letter) {
  if (kind != LetterKind::rows && kind != LetterKind::rows_and_body) fail_damaged_letter();
  came_.push_back({rows_->bound().number_of(letter.from), letter.bytes, kind == LetterKind::rows_and_body});
}

[[gnu::hot]] void RowsWay::take(const RunContext& context) {
  if (is_pull_ || !came_.empty() || rows_->has_own()) is_by_rows_ = rows_->take(came_);
  if (is_by_rows_ || came_.empty()) return;
  if (!is_pull_)
    for (const RowStatement::Came& came : came_)
      if (came.from != rows_->bound().state.rank)
        general_.add({.from = came.from, .notice = {}, .payload = rows_->payload(came.letter)});
  general_.arrived().order();
  go_general_way(context);
  // Where values only are copied, as bodies and elements that every rank knows of are, it has found what was wrong.
  if (!is_told_ || std::ranges::any_of(came_, &RowStatement::Came::has_body)) fail_damaged_letter();
}

void RowsWay::go_general_way(const RunContext& context) {
  is_by_rows_ = false;
  general_.take_notices(context, rows_->notices(came_));
}

[[gnu::hot]] std::span<const std::span<std::byte>> RowsWay::places(int from, const std::vector<BoundMemory>& memory) {
  if (!is_by_rows_) return {};
  const auto at = std::ranges::find(came_, rows_->bound().number_of(from), &RowStatement::Came::from);
  return rows_->places(static_cast<std::size_t>(at - came_.begin()), memory);
}

/// Makes letters of the values of the rows that were asked for; this rank's own answer stays here.
[[gnu::hot]] void RowsWay::answer(const RunContext& context, std::span<const int> requesters, const Outbox& to) {
  if (!is_by_rows_) return general_.answer(context, requesters, to);
  general_.arrived().clear();
  for (std::size_t n = 0; n < came_.size(); ++n) {
    const std::size_t bytes = rows_->answer_bytes(n);
    if (came_[n].from == rows_->bound().state.rank) {
      own_answer_.resize(bytes);
      rows_->answer(n, context.memory, own_answer_.data());
      continue;
    }
    const auto rank = static_cast<int>(rows_->bound().world_rank_of(came_[n].from));
    std::byte* const letter = to.letters.add(to.exchange, rank, message_letter_bytes(bytes));
    rows_->answer(n, context.memory, begin_message_letter(letter));
  }
}

[[gnu::hot]] void RowsWay::take_answers(const RunContext& context) {
  general_.arrived().order();
  if (!is_by_rows_) return;
  answers_.clear();
  for (const ArrivedPattern& arrived : general_.arrived().all()) answers_.push_back({arrived.from, arrived.payload});
  if (rows_->has_own()) answers_.push_back({rows_->bound().state.rank, own_answer_});
  if (!rows_->take_answers(answers_)) go_general_way(context);
}

[[gnu::hot]] void RowsWay::apply(const RunContext& context) {
  if (!is_by_rows_) return general_.apply(context);
  if (const ReadyCall* faulty = rows_->apply(context.memory))
    context.notes.note_zero_divisor(*faulty, /*is_value=*/false);
}

}  // namespace kplan
