// How it works: every letter has a header, perhaps a notice (the where-bound values that the other end needs) and
// perhaps the message itself; statements of plain form have letters of rows instead (row_statement.hpp). A rank that
// fails tells all others in place of what it would have sent, and takes part to the end. Nothing is written before
// everything has been read.
#include "engine/runtime/varying_statement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/analysis/notice_bytes.hpp"
#include "engine/runtime/letter.hpp"

namespace kplan {
namespace {

/// Among so many ranks each is everyone's neighbour in the comparison of uniform values, so that to know sources spares
/// nothing.
constexpr int most_neighbours = 3;

}  // namespace

VaryingStatement::VaryingStatement(const BoundPlan& bound, std::size_t number, transport::Transport& transport,
                                   transport::Clock::time_point deadline, std::unique_ptr<RowStatement> rows)
    : statement_(bound.model->statements[number]),
      uniform_parameters_(uniform_varying_parameters(*bound.model)),
      number_(number),
      rank_(transport.rank()),
      size_(transport.size()),
      knowledge_(infer_knowledge(*bound.model, statement_)),
      is_told_(is_told(knowledge_)),
      first_(transport.open_exchange(deadline)),
      rows_(std::move(rows)),
      known_(*bound.model, statement_),
      can_settle_(known_.can_settle() && size_ > most_neighbours) {
  const PlanModel& plan = *bound.model;
  if (is_pull_told() || can_settle_) second_ = transport.open_exchange(deadline);
  sent_->rows = rows_;
  for (transport::SparseExchange* exchange : {first_.get(), second_.get()})
    if (exchange) exchange->keep(sent_);
  if (transport.tells_faster())
    for (int r = 0; r < size_; ++r)
      if (r != rank_) told_.push_back(r);
  for (const int b : touched_by(plan, statement_).reads) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
    if (buffer.is_uniform && buffer.is_varying) uniform_buffers_.push_back(b);
  }
}

/// Of the varying values that must be the same on all ranks: parameters, and the contents that decide this pattern.
[[gnu::hot]] std::uint64_t VaryingStatement::hash_of_uniform(const BoundPlan& bound) const {
  std::uint64_t out = 0;
  for (const int p : uniform_parameters_) {
    const ScalarValue& value = bound.state.parameters[static_cast<std::size_t>(p)];
    out = mixed(mixed(out, value.bits[0]), value.bits[1]);
  }
  for (const int b : uniform_buffers_) {
    const auto n = static_cast<std::size_t>(b);
    if (!bound.state.contents[n]) continue;
    const std::size_t size = bound.model->buffers[n].type.size_bytes;
    each_run(bound.state.layouts[n], [&](std::int64_t first, std::int64_t count) {
      const std::byte* const at = bound.state.contents[n] + static_cast<std::size_t>(first) * size;
      const std::size_t bytes = static_cast<std::size_t>(count) * size;
      for (std::size_t k = 0; k < bytes; k += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, at + k, std::min<std::size_t>(8, bytes - k));
        out = mixed(out, word);
      }
    });
  }
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
  sent_->letters.clear();
  asked_.clear();
  is_by_rows_ = false;
  stage_ = Stage::asking;
  standing_ = KnownPatterns::Standing::is_new;
  try {
    uniform_hash_ = hash_of_uniform(context.bound);
    outgoing_.clear();
    if (rows_) {
      found_.bound.reset();
      rows_->send(context.bound.state, context.memory, uniform_hash_, *first_, outgoing_);
    } else {
      FoundPattern* const known = known_.recall(context.bound.state);
      if (can_settle_) standing_ = known_.meet();
      if (known) now_ = known, is_known_ = true;
      else begin_draft(context);
      send_first(context);
    }
  } catch (const std::exception&) {
    note(std::current_exception());
    sent_->letters.clear();
    asked_.clear();
    for (int r = 0; r < size_; ++r)
      if (r != rank_) sent_->letters[r] = failure_letter(failure_);
  }
  if (standing_ == KnownPatterns::Standing::is_settled) return begin_settled();
  if ((rows_ || !is_told_) && !failure_) {
    if (is_pull_told())
      for (const transport::OutgoingLetter& letter : outgoing_) asked_.push_back(letter.to);
    std::ranges::sort(asked_);
  } else {
    gather_letters();
  }
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
    const std::int64_t to = schedule.world_rank_of(notice.peer);
    Letter& letter = sent_->letters[to];
    set_header(letter, {});
    append_notice(static_cast<int>(number_), notice, letter);
    PatternHeader header;
    header.notice_bytes = letter.size() - sizeof(PatternHeader);
    set_header(letter, header);
    if (is_pull_told()) asked_.push_back(static_cast<int>(to));
  }
  std::ranges::sort(asked_);
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

/// Memory for letter number k of an exchange: the exchange's own if it has any.
[[gnu::hot]] std::byte* VaryingStatement::room(transport::SparseExchange& exchange, std::size_t k, int to,
                                               std::size_t bytes) {
  if (std::byte* const letter = exchange.room(to, bytes)) return letter;
  if (sent_->memories.size() <= k) sent_->memories.resize(k + 1);
  if (sent_->memories[k].size() < bytes) sent_->memories[k].resize(bytes);
  return sent_->memories[k].data();
}

/// Adds the pattern's messages to the letters.
void VaryingStatement::pack(const RunContext& context) {
  StatementProgram& program = make_sending(context);
  for (std::size_t k = 0; k < program.outgoing.size(); ++k) {
    OutgoingMessage& m = program.outgoing[k];
    Letter& letter = sent_->letters[m.world_rank];
    PatternHeader header;
    if (!letter.empty()) header = pattern_header_of(letter);
    set_header(letter, header);
    letter.resize(aligned_in_letter(letter.size()), std::byte{});
    header.payload_offset_bytes = letter.size();
    header.element_count = now_->schedule.sends[k].element_count;
    header.digest = now_->schedule.sends[k].digest;
    letter.resize(letter.size() + m.bytes);
    set_header(letter, header);
    for (ReadyCall& call : m.calls)
      if (call(context.memory, letter.data() + header.payload_offset_bytes) != 0)
        context.notes.note_zero_divisor(static_cast<int>(number_), call, true);
  }
}

/// The letters are what the next exchange sends.
[[gnu::hot]] void VaryingStatement::gather_letters() {
  outgoing_.clear();
  for (auto& [to, letter] : sent_->letters) {
    set_uniform_hash(letter, uniform_hash_);
    outgoing_.push_back({static_cast<int>(to), letter});
  }
}

/// Begins the exchange in which nobody knows who sends to it.
[[gnu::hot]] void VaryingStatement::begin_first() {
  if (!compared_.empty()) send_heads();
  if (told_.empty()) return first_->begin(outgoing_);
  const std::size_t letters = outgoing_.size();
  for (const int rank : told_) {
    const auto known = std::span(outgoing_).first(letters);
    if (std::ranges::find(known, rank, &transport::OutgoingLetter::to) == known.end()) outgoing_.push_back({rank, {}});
  }
  first_->begin(outgoing_, told_);
}

[[gnu::hot]] void VaryingStatement::send_heads() {
  sent_->head = {LetterKind::head, uniform_hash_};
  const std::span<const std::byte> letter = std::as_bytes(std::span(&sent_->head, 1));
  for (const int rank : compared_)
    if (std::ranges::find(outgoing_, rank, &transport::OutgoingLetter::to) == outgoing_.end())
      outgoing_.push_back({rank, letter});
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
    for (const transport::ReceivedLetter& letter : first_->received()) {
      if (letter.bytes.empty()) continue;  // there is nothing for this rank
      const LetterHead head = head_of(letter.bytes);
      if (head.kind == LetterKind::failure) {
        note(failure_in(letter.bytes, letter.from));
        continue;
      }
      if (!now_->bound && !rows_) continue;  // failed here, or this rank has no part: nothing can be made of it
      if (head.uniform_hash != uniform_hash_)
        throw PlanError("KP-A002", fmt::format("plan {}, statement {}: uniform varying values differ between rank {} "
                                               "and rank {}; set them alike on all ranks",
                                               context.bound.model->name, statement_.name, std::min(rank_, letter.from),
                                               std::max(rank_, letter.from)));
      if (head.kind == LetterKind::head) continue;
      const bool has_body = head.kind == LetterKind::rows_and_body;
      if (has_body || head.kind == LetterKind::rows) {
        if (!rows_) fail_damaged_letter();
        came_.push_back({rows_->bound().number_of(letter.from), letter.bytes, has_body});
        continue;
      }
      if (rows_) fail_damaged_letter();
      const PatternHeader header = pattern_header_of(letter.bytes);
      Arrived& arrived = arrived_.emplace_back();
      arrived.from = now_->bound->number_of(letter.from);
      if (header.notice_bytes > 0) {
        std::span<const std::byte> rest = letter.bytes.subspan(sizeof header, header.notice_bytes);
        arrived.notice = take_notice(rest, arrived.from).notice;
      }
      if (header.payload_offset_bytes > 0) arrived.payload = letter.bytes.subspan(header.payload_offset_bytes);
      arrived.element_count = header.element_count;
      arrived.digest = header.digest;
    }
    if (failure_) return;
    if (rows_) return take_rows(context);
    order_arrived();
    if (now_->schedule.size == 0) return;
    if (!is_told_) {
      compare_ends();
      return make_receiving(context);
    }
    std::vector<Notice> told;
    for (Arrived& arrived : arrived_)
      if (arrived.notice) told.push_back(std::move(*arrived.notice));
    finish_told(context, std::move(told));
  } catch (const std::exception&) {
    note(std::current_exception());
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
  for (ReadyCall& call : now_->receiving->staging)
    if (call(context.memory, now_->receiving->staged.data()) != 0)
      context.notes.note_zero_divisor(static_cast<int>(number_), call, true);
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
  sent_->letters.clear();
  const auto each_requester = [&](const auto& f) {
    for (const transport::ReceivedLetter& letter : first_->received())
      if (!letter.bytes.empty() && asks(head_of(letter.bytes))) f(letter.from);
  };
  try {
    if (failure_) std::rethrow_exception(failure_);
    if (is_by_rows_) {
      answer_rows(context);
    } else {
      each_requester([&](int to) { set_header(sent_->letters[to], {}); });
      if (found_.schedule.size > 0) pack(context);
    }
  } catch (const std::exception&) {
    note(std::current_exception());
    sent_->letters.clear();
    each_requester([&](int to) { sent_->letters[to] = failure_letter(failure_); });
  }
  if (!is_by_rows_ || failure_) gather_letters();
  second_->begin(outgoing_, asked_);
}

/// Makes letters of the values of the rows that were asked for; this rank's own answer stays here.
[[gnu::hot]] void VaryingStatement::answer_rows(const RunContext& context) {
  outgoing_.clear();
  for (std::size_t n = 0; n < came_.size(); ++n) {
    const std::size_t bytes = rows_->answer_bytes(n);
    if (came_[n].from == rows_->bound().state.rank) {
      own_answer_.resize(bytes);
      rows_->answer(n, context.memory, own_answer_.data());
      continue;
    }
    PatternHeader header;
    header.payload_offset_bytes = sizeof header;
    const auto to = static_cast<int>(rows_->bound().world_rank_of(came_[n].from));
    std::byte* const letter = room(*second_, n, to, sizeof header + bytes);
    std::memcpy(letter, &header, sizeof header);
    rows_->answer(n, context.memory, letter + sizeof header);
    outgoing_.push_back({to, {letter, sizeof header + bytes}});
  }
}

[[gnu::hot]] void VaryingStatement::take_replies(const RunContext& context) {
  arrived_.clear();
  try {
    for (const transport::ReceivedLetter& letter : second_->received()) {
      if (head_of(letter.bytes).kind == LetterKind::failure) {
        note(failure_in(letter.bytes, letter.from));
      } else if (!failure_) {
        const PatternHeader header = pattern_header_of(letter.bytes);
        Arrived& arrived = arrived_.emplace_back();
        arrived.from = (rows_ ? rows_->bound() : *now_->bound).number_of(letter.from);
        if (header.payload_offset_bytes > 0) arrived.payload = letter.bytes.subspan(header.payload_offset_bytes);
      }
    }
    order_arrived();
    if (failure_ || !is_by_rows_) return;
    answers_.clear();
    for (const Arrived& arrived : arrived_) answers_.push_back({arrived.from, arrived.payload});
    if (rows_->has_own()) answers_.push_back({rows_->bound().state.rank, own_answer_});
    if (!rows_->take_answers(answers_)) go_general_way(context);
  } catch (const std::exception&) {
    note(std::current_exception());
  }
}

/// Groups have an order of their own.
[[gnu::hot]] void VaryingStatement::order_arrived() {
  if (!std::ranges::is_sorted(arrived_, {}, &Arrived::from)) std::ranges::sort(arrived_, {}, &Arrived::from);
}

/// Null where nothing has come from there.
[[gnu::hot]] const VaryingStatement::Arrived* VaryingStatement::arrived_from(std::int64_t peer) const {
  const auto at = std::ranges::lower_bound(arrived_, peer, {}, &Arrived::from);
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
    std::byte* message = m.is_local ? now_->receiving->staged.data() : nullptr;
    // Kernels that unpack only read the message.
    if (const Arrived* arrived = m.is_local ? nullptr : arrived_from(m.peer))
      message = const_cast<std::byte*>(arrived->payload.data());
    const bool is_direct = m.is_local && now_->receiving->staging.empty();
    for (ReadyCall& call : m.calls)
      if (call(context.memory, message) != 0)
        context.notes.note_zero_divisor(static_cast<int>(number_), call, is_direct);
  }
}

std::vector<int> VaryingStatement::waits_for() const {
  if (stage_ == Stage::asking || stage_ == Stage::filling) return first_->waits_for();
  return stage_ == Stage::done ? std::vector<int>{} : second_->waits_for();
}

}  // namespace kplan
