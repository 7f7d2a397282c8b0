// How it works: statements of plain form send rows (row_statement.hpp), others go the general way: a draft of the
// schedule, which what others tell makes whole (pattern_letter.hpp). A rank that fails tells all others in place of
// what it would have sent, and takes part to the end. Nothing is written before everything has been read.
#include "engine/runtime/varying_statement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kplan {
namespace {

/// Among so many ranks each is everyone's neighbour in the comparison of uniform values, so that to know sources spares
/// nothing.
constexpr int most_neighbours = 3;

}  // namespace

VaryingStatement::VaryingStatement(const BoundPlan& bound, std::size_t number, transport::Transport& transport,
                                   transport::Clock::time_point deadline, std::unique_ptr<RowStatement> rows)
    : statement_(bound.model->statements[number]),
      uniform_(*bound.model, statement_),
      number_(number),
      rank_(transport.rank()),
      size_(transport.size()),
      knowledge_(infer_knowledge(*bound.model, statement_)),
      is_told_(is_told(knowledge_)),
      first_(transport.open_exchange(deadline)),
      rows_(std::move(rows)),
      letters_(rows_),
      known_(*bound.model, statement_),
      can_settle_(known_.can_settle() && size_ > most_neighbours) {
  if (is_pull_told() || can_settle_) second_ = transport.open_exchange(deadline);
  for (transport::SparseExchange* exchange : {first_.get(), second_.get()})
    if (exchange) exchange->keep(letters_.memory());
  if (transport.tells_faster()) always_told_ = others();
}

/// All other ranks, ascending.
std::vector<int> VaryingStatement::others() const {
  std::vector<int> out(static_cast<std::size_t>(size_));
  std::iota(out.begin(), out.end(), 0);
  out.erase(out.begin() + rank_);
  return out;
}

[[gnu::hot]] void VaryingStatement::begin(const RunContext& context, std::span<const int> compared) {
  compared_ = compared;
  differing_.clear();
  failure_ = nullptr;
  draft_.reset();
  now_ = &found_;
  is_known_ = false;
  arrived_.clear();
  letters_.clear();
  asked_.clear();
  is_by_rows_ = false;
  stage_ = Stage::asking;
  standing_ = KnownPatterns::Standing::is_new;
  try {
    uniform_hash_ = uniform_.of(context.bound);
    if (rows_) {
      found_.bound.reset();
      rows_->send(context.bound.state, context.memory, uniform_hash_, *first_, letters_.list());
    } else {
      FoundPattern* const known = known_.recall(context.bound.state);
      if (can_settle_) standing_ = known_.meet();
      if (known) now_ = known, is_known_ = true;
      else begin_draft(context);
      send_first(context);
    }
  } catch (const std::exception&) {
    note(std::current_exception());
    letters_.tell_failure(failure_, others());
  }
  if (standing_ == KnownPatterns::Standing::is_settled) return begin_settled();
  letters_.add_grown(uniform_hash_);
  if (is_pull_told() && !failure_)
    for (const transport::OutgoingLetter& letter : letters_.list()) asked_.push_back(letter.to);
  std::ranges::sort(asked_);
  begin_first();
}

void VaryingStatement::begin_draft(const RunContext& context) {
  found_.bound.reset();
  draft_ = draft_statement(context.bound, number_, knowledge_);
  found_.bound = draft_->bound;
  found_.schedule = draft_->schedule;
}

[[gnu::hot]] void VaryingStatement::send_first(const RunContext& context) {
  if (now_->schedule.size == 0) return;
  if (!is_told_) {
    if (!is_known_) {
      found_.schedule = finish_statement(std::move(*draft_), {});
      draft_.reset();
      now_ = known_.keep(found_);
    }
    return send_known(context);
  }
  StatementSchedule& schedule = found_.schedule;
  if (!statement_.is_pull) schedule.sends = sent_messages(*draft_), schedule.values = draft_->pattern.values;
  for (const Notice& notice : draft_->notices) {
    if (notice.peer == schedule.rank) continue;
    add_notice(letters_.grown(schedule.world_rank_of(notice.peer)), static_cast<int>(number_), notice);
  }
  if (!is_pull_told()) pack(context);
}

[[gnu::hot]] StatementProgram& VaryingStatement::make_sending(const RunContext& context) {
  if (!is_known_ || !now_->sending) {
    StatementSchedule outgoing = now_->schedule;
    outgoing.receives.clear();
    outgoing.local_send.clear();
    outgoing.local_receive.clear();
    now_->sending = make_statement_program(*now_->bound, outgoing, context.operators, reuse());
  }
  return *now_->sending;
}

/// Adds the pattern's messages to the letters.
void VaryingStatement::pack(const RunContext& context) {
  StatementProgram& program = make_sending(context);
  for (std::size_t k = 0; k < program.outgoing.size(); ++k) {
    OutgoingMessage& m = program.outgoing[k];
    std::byte* const message = add_message(letters_.grown(m.world_rank), now_->schedule.sends[k], m.bytes);
    context.pack(m.calls, message, static_cast<int>(number_));
  }
}

/// Begins the exchange in which nobody knows who sends to it.
[[gnu::hot]] void VaryingStatement::begin_first() {
  letters_.add_heads(compared_, uniform_hash_);
  if (always_told_.empty()) return first_->begin(letters_.list());
  letters_.add_empty(always_told_);
  first_->begin(letters_.list(), always_told_);
}

[[gnu::hot]] bool VaryingStatement::advance(const RunContext& context) {
  if (stage_ == Stage::asking) {
    if (!first_->letters_have_come()) return false;
    take_first(context);
    place_bodies(context);
    stage_ = Stage::filling;
  }
  if (stage_ == Stage::filling) {
    if (!first_->is_complete()) return false;
    stage_ = Stage::done;
    if (is_pull_told()) {
      reply(context);
      stage_ = Stage::moving;
    } else if (standing_ == KnownPatterns::Standing::was_met) {
      begin_settling();
      stage_ = Stage::settling;
    }
  }
  if (stage_ == Stage::settling) {
    if (!second_->is_complete()) return false;
    if (!failure_ && second_->received().empty()) known_.settle();
    stage_ = Stage::done;
  }
  if (stage_ == Stage::moving) {
    if (!second_->is_complete()) return false;
    take_replies(context);
    stage_ = Stage::done;
  }
  return true;
}

[[gnu::hot]] void VaryingStatement::compare_hashes() {
  for (const transport::ReceivedLetter& letter : first_->received()) {
    if (letter.bytes.empty() || head_of(letter.bytes).uniform_hash == uniform_hash_) continue;
    if (std::ranges::find(compared_, letter.from) != compared_.end()) differing_.push_back(letter.from);
  }
}

[[gnu::hot]] void VaryingStatement::take_first(const RunContext& context) {
  try {
    came_.clear();
    if (!compared_.empty()) compare_hashes();
    for (const transport::ReceivedLetter& letter : first_->received())
      if (!letter.bytes.empty()) take_letter(context, letter);  // else there is nothing for this rank
    if (failure_) return;
    if (rows_) return take_rows(context);
    order_arrived();
    if (now_->schedule.size == 0) return;
    if (!is_told_) {
      compare_ends();
      return make_receiving(context);
    }
    std::vector<Notice> told;
    for (ArrivedPattern& arrived : arrived_)
      if (arrived.notice) told.push_back(std::move(*arrived.notice));
    finish_told(context, std::move(told));
  } catch (const std::exception&) {
    note(std::current_exception());
  }
}

[[gnu::hot]] void VaryingStatement::take_letter(const RunContext& context, const transport::ReceivedLetter& letter) {
  const LetterHead head = head_of(letter.bytes);
  if (head.kind == LetterKind::failure) return note(failure_in(letter.bytes, letter.from));
  if (!now_->bound && !rows_) return;  // failed here, or this rank has no part: nothing can be made of it
  if (head.uniform_hash != uniform_hash_)
    throw PlanError("KP-A002", fmt::format("plan {}, statement {}: uniform varying values differ between rank {} "
                                           "and rank {}; set them alike on all ranks",
                                           context.bound.model->name, statement_.name, std::min(rank_, letter.from),
                                           std::max(rank_, letter.from)));
  if (head.kind == LetterKind::head) return;
  if ((head.kind == LetterKind::pattern) == (rows_ != nullptr)) fail_damaged_letter();
  if (rows_) {
    const bool has_body = head.kind == LetterKind::rows_and_body;
    came_.push_back({rows_->bound().number_of(letter.from), letter.bytes, has_body});
  } else {
    arrived_.push_back(read_pattern_letter(letter.bytes, now_->bound->number_of(letter.from)));
  }
}

void VaryingStatement::finish_told(const RunContext& context, std::vector<Notice> told) {
  found_.schedule = finish_statement(std::move(*draft_), std::move(told));
  make_receiving(context);
}

[[gnu::hot]] void VaryingStatement::make_receiving(const RunContext& context) {
  if (!is_known_ || !now_->receiving) {
    StatementSchedule incoming = now_->schedule;
    incoming.sends.clear();
    now_->receiving = make_statement_program(*now_->bound, incoming, context.operators, reuse());
  }
  context.pack(now_->receiving->staging, now_->receiving->staged.data(), static_cast<int>(number_));
}

[[gnu::hot]] void VaryingStatement::take_rows(const RunContext& context) {
  if (statement_.is_pull || !came_.empty() || rows_->has_own()) is_by_rows_ = rows_->take(came_);
  if (is_by_rows_ || came_.empty()) return;
  if (!statement_.is_pull)
    for (const RowStatement::Came& came : came_)
      if (came.from != rows_->bound().state.rank)
        arrived_.push_back({.from = came.from, .notice = {}, .payload = rows_->payload(came.letter)});
  go_general_way(context);
  // Where values only are copied, as bodies are, it finds what was wrong.
  if (std::ranges::any_of(came_, &RowStatement::Came::has_body)) fail_damaged_letter();
}

/// Says where the bodies of letters go: nowhere after a failure.
[[gnu::hot]] void VaryingStatement::place_bodies(const RunContext& context) {
  for (const transport::ReceivedLetter& letter : first_->received()) {
    if (letter.bytes.empty() || head_of(letter.bytes).kind != LetterKind::rows_and_body) continue;
    std::span<const std::span<std::byte>> places;
    if (is_by_rows_ && !failure_) {
      const auto at = std::ranges::find(came_, rows_->bound().number_of(letter.from), &RowStatement::Came::from);
      places = rows_->places(static_cast<std::size_t>(at - came_.begin()), context.memory);
    }
    first_->place_body(letter.from, places);
  }
}

/// Once more from the start, with what others have told: finds out what is wrong.
void VaryingStatement::go_general_way(const RunContext& context) {
  is_by_rows_ = false;
  begin_draft(context);
  finish_told(context, rows_->notices(came_));
}

/// Answers everyone that has asked, if only by the failure.
[[gnu::hot]] void VaryingStatement::reply(const RunContext& context) {
  const auto requesters = [&] {
    std::vector<int> out;
    for (const transport::ReceivedLetter& letter : first_->received())
      if (!letter.bytes.empty() && asks(head_of(letter.bytes))) out.push_back(letter.from);
    return out;
  };
  letters_.clear();
  try {
    if (failure_) std::rethrow_exception(failure_);
    if (is_by_rows_) {
      answer_rows(context);
    } else {
      for (const int rank : requesters()) begin_pattern_letter(letters_.grown(rank));
      if (found_.schedule.size > 0) pack(context);
    }
  } catch (const std::exception&) {
    note(std::current_exception());
    letters_.tell_failure(failure_, requesters());
  }
  letters_.add_grown(uniform_hash_);
  second_->begin(letters_.list(), asked_);
}

/// Makes letters of the values of the rows that were asked for; this rank's own answer stays here.
[[gnu::hot]] void VaryingStatement::answer_rows(const RunContext& context) {
  for (std::size_t n = 0; n < came_.size(); ++n) {
    const std::size_t bytes = rows_->answer_bytes(n);
    if (came_[n].from == rows_->bound().state.rank) {
      own_answer_.resize(bytes);
      rows_->answer(n, context.memory, own_answer_.data());
      continue;
    }
    const auto to = static_cast<int>(rows_->bound().world_rank_of(came_[n].from));
    std::byte* const letter = letters_.add(*second_, to, message_letter_bytes(bytes));
    rows_->answer(n, context.memory, begin_message_letter(letter));
  }
}

[[gnu::hot]] void VaryingStatement::take_replies(const RunContext& context) {
  arrived_.clear();
  try {
    for (const transport::ReceivedLetter& letter : second_->received()) {
      if (head_of(letter.bytes).kind == LetterKind::failure) {
        note(failure_in(letter.bytes, letter.from));
      } else if (!failure_) {
        const BoundPlan& bound = rows_ ? rows_->bound() : *now_->bound;
        arrived_.push_back(read_pattern_letter(letter.bytes, bound.number_of(letter.from)));
      }
    }
    order_arrived();
    if (failure_ || !is_by_rows_) return;
    answers_.clear();
    for (const ArrivedPattern& arrived : arrived_) answers_.push_back({arrived.from, arrived.payload});
    if (rows_->has_own()) answers_.push_back({rows_->bound().state.rank, own_answer_});
    if (!rows_->take_answers(answers_)) go_general_way(context);
  } catch (const std::exception&) {
    note(std::current_exception());
  }
}

/// Groups have an order of their own.
[[gnu::hot]] void VaryingStatement::order_arrived() {
  if (!std::ranges::is_sorted(arrived_, {}, &ArrivedPattern::from))
    std::ranges::sort(arrived_, {}, &ArrivedPattern::from);
}

/// Null where nothing has come from there.
[[gnu::hot]] const ArrivedPattern* VaryingStatement::arrived_from(std::int64_t peer) const {
  const auto at = std::ranges::lower_bound(arrived_, peer, {}, &ArrivedPattern::from);
  return at != arrived_.end() && at->from == peer ? &*at : nullptr;
}

[[gnu::hot]] void VaryingStatement::apply(const RunContext& context) {
  if (failure_) return;
  if (is_by_rows_) {
    if (const ReadyCall* faulty = rows_->apply(context.memory))
      context.notes.note_zero_divisor(static_cast<int>(number_), *faulty, false);
    return;
  }
  if (!now_->bound || now_->schedule.size == 0) return;
  for (IncomingMessage& m : now_->receiving->incoming) {
    const std::byte* message = m.is_local ? now_->receiving->staged.data() : nullptr;
    if (const ArrivedPattern* arrived = m.is_local ? nullptr : arrived_from(m.peer)) message = arrived->payload.data();
    const bool is_direct = m.is_local && now_->receiving->staging.empty();
    context.unpack(m.calls, message, static_cast<int>(number_), /*has_values=*/is_direct);
  }
}

std::vector<int> VaryingStatement::waits_for() const {
  if (stage_ == Stage::asking || stage_ == Stage::filling) return first_->waits_for();
  return stage_ == Stage::done ? std::vector<int>{} : second_->waits_for();
}

}  // namespace kplan
