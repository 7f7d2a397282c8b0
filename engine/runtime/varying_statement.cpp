// How it works: what letters hold is a way's business (varying_way.hpp), when they go is decided here. A rank that
// fails tells all others in place of what it would have sent, and takes part to the end. Nothing is written before
// everything has been read.
#include "engine/runtime/varying_statement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kplan {

VaryingStatement::VaryingStatement(const BoundPlan& bound, std::size_t number, transport::Transport& transport,
                                   transport::Clock::time_point deadline, std::shared_ptr<RowStatement> rows,
                                   Enclosed& enclosed)
    : statement_(bound.model->statements[number]),
      uniform_(*bound.model, statement_),
      rank_(transport.rank()),
      size_(transport.size()),
      first_(transport.open_exchange(deadline)),
      enclosed_(enclosed),
      carried_(enclosed.incoming.size()) {
  if (rows) letters_.keep(rows);
  if (rows) by_rows_ = std::make_unique<RowsWay>(bound, number, std::move(rows));
  if (hangs_on_parameters(*bound.model, statement_) ||
      !(by_rows_ || is_told(infer_knowledge(*bound.model, statement_))))
    known_ = std::make_unique<KnownWay>(bound, number);
  else if (!by_rows_) told_ = std::make_unique<ToldWay>(bound, number);
  if (known_) letters_.keep(known_->memory());
  if (is_asked_for() || can_settle()) second_ = transport.open_exchange(deadline);
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
  letters_.clear(enclosed_.outgoing);
  asked_.clear();
  stage_ = Stage::asking;
  choose_way(context);
  try {
    uniform_hash_ = uniform_.of(context.bound);
    way_->send(context, outbox(*first_));
  } catch (const std::exception&) {
    note(std::current_exception());
    letters_.tell_failure(failure_, others());
  }
  if (known_ && known_->standing() == KnownPatterns::Standing::is_settled) return begin_settled();
  letters_.add_grown(uniform_hash_);
  if (is_asked_for() && !failure_)
    for (const transport::OutgoingLetter& letter : letters_.list()) asked_.push_back(letter.to);
  std::ranges::sort(asked_);
  begin_first(context);
}

[[gnu::hot]] void VaryingStatement::choose_way(const RunContext& context) {
  if (known_) known_->recall(context);
  if (by_rows_ && (!known_ || known_->is_new())) way_ = by_rows_.get();
  else if (known_) way_ = known_.get();
  else way_ = told_.get();
}

/// Begins the exchange in which nobody knows who sends to it.
[[gnu::hot]] void VaryingStatement::begin_first(const RunContext& context) {
  letters_.add_heads(compared_, uniform_hash_);
  if (always_told_.empty()) return first_->begin(letters_.list());
  letters_.add_empty(always_told_);
  letters_.enclose(context);
  first_->begin(letters_.list(), always_told_);
}

/// Those that this rank receives from are known, and they know of it: if nothing else they get a failure.
[[gnu::hot]] void VaryingStatement::begin_settled() {
  if (failure_) {
    letters_.tell_failure(failure_, known_->receivers());
    letters_.add_grown(uniform_hash_);
  }
  first_->begin(letters_.list(), known_->sources());
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
    stage_ = begin_second(context);
  }
  if (stage_ == Stage::done) return true;
  if (!second_->is_complete()) return false;
  if (stage_ == Stage::answering) take_answers(context);
  else if (!failure_ && known_->is_kept() && second_->received().empty()) known_->settle();
  stage_ = Stage::done;
  return true;
}

[[gnu::hot]] void VaryingStatement::take_first(const RunContext& context) {
  try {
    take_apart();
    if (!compared_.empty()) compare_hashes();
    for (const transport::ReceivedLetter& letter : come_)
      if (!letter.bytes.empty()) take_letter(context, letter);  // else there is nothing for this rank
    if (!failure_) way_->take(context);
  } catch (const std::exception&) {
    note(std::current_exception());
  }
}

/// Of those from whom something is to come with it, each has sent one letter; all are by ascending sender.
[[gnu::hot]] void VaryingStatement::take_apart() {
  std::ranges::fill(carried_, nullptr);
  come_.assign(first_->received().begin(), first_->received().end());
  auto letter = come_.begin();
  for (std::size_t k = 0; k < enclosed_.incoming.size(); ++k) {
    const EnclosedMessage& m = enclosed_.incoming[k];
    letter = std::find_if(letter, come_.end(), [&](const auto& l) { return l.from == m.peer; });
    if (letter == come_.end() || letter->bytes.size() < m.bytes) fail_damaged_letter();
    carried_[k] = letter->bytes.last(m.bytes).data();
    letter->bytes = letter->bytes.first(letter->bytes.size() - m.bytes);
  }
}

[[gnu::hot]] void VaryingStatement::compare_hashes() {
  for (const transport::ReceivedLetter& letter : come_) {
    if (letter.bytes.empty() || head_of(letter.bytes).uniform_hash == uniform_hash_) continue;
    if (std::ranges::find(compared_, letter.from) != compared_.end()) differing_.push_back(letter.from);
  }
}

[[gnu::hot]] void VaryingStatement::take_letter(const RunContext& context, const transport::ReceivedLetter& letter) {
  const LetterHead head = head_of(letter.bytes);
  if (head.kind == LetterKind::failure) return note(failure_in(letter.bytes, letter.from));
  if (!way_->can_take()) return;
  if (head.uniform_hash != uniform_hash_)
    throw PlanError("KP-A002", fmt::format("plan {}, statement {}: uniform varying values differ between rank {} "
                                           "and rank {}; set them alike on all ranks",
                                           context.bound.model->name, statement_.name, std::min(rank_, letter.from),
                                           std::max(rank_, letter.from)));
  if (head.kind != LetterKind::head) way_->take_letter(head.kind, letter);
}

/// Says where the bodies of letters go: nowhere after a failure.
[[gnu::hot]] void VaryingStatement::place_bodies(const RunContext& context) {
  for (const transport::ReceivedLetter& letter : come_) {
    if (letter.bytes.empty() || !has_body(head_of(letter.bytes))) continue;
    std::span<const std::span<std::byte>> places;
    if (!failure_) places = way_->places(letter.from, context.memory);
    first_->place_body(letter.from, places);
  }
}

/// The exchange that follows the first, if one does.
[[gnu::hot]] VaryingStatement::Stage VaryingStatement::begin_second(const RunContext& context) {
  if (is_asked_for()) {
    answer(context);
    return Stage::answering;
  }
  if (!known_ || known_->standing() != KnownPatterns::Standing::was_met) return Stage::done;
  begin_settling();
  return Stage::settling;
}

/// Everyone that has asked, if only by the failure.
[[gnu::hot]] void VaryingStatement::answer(const RunContext& context) {
  requesters_.clear();
  for (const transport::ReceivedLetter& letter : come_)
    if (!letter.bytes.empty() && asks(head_of(letter.bytes))) requesters_.push_back(letter.from);
  letters_.clear();
  try {
    if (failure_) std::rethrow_exception(failure_);
    way_->answer(context, requesters_, outbox(*second_));
  } catch (const std::exception&) {
    note(std::current_exception());
    letters_.tell_failure(failure_, requesters_);
  }
  letters_.add_grown(uniform_hash_);
  second_->begin(letters_.list(), asked_);
}

[[gnu::hot]] void VaryingStatement::take_answers(const RunContext& context) {
  try {
    for (const transport::ReceivedLetter& letter : second_->received()) {
      if (head_of(letter.bytes).kind == LetterKind::failure) note(failure_in(letter.bytes, letter.from));
      else if (!failure_) way_->take_answer(letter);
    }
    if (!failure_) way_->take_answers(context);
  } catch (const std::exception&) {
    note(std::current_exception());
  }
}

/// A rank that has found something wrong, or is to find it anew in each run, tells all others so.
void VaryingStatement::begin_settling() {
  letters_.clear();
  if (failure_ || !known_->is_kept()) letters_.add_heads(others(), uniform_hash_);
  second_->begin(letters_.list());
}

[[gnu::hot]] void VaryingStatement::apply(const RunContext& context) {
  for (std::size_t k = 0; k < carried_.size(); ++k)
    if (carried_[k]) context.unpack(enclosed_.incoming[k].calls, carried_[k], /*has_values=*/false);
  if (!failure_) way_->apply(context);
}

std::vector<int> VaryingStatement::waits_for() const {
  if (stage_ == Stage::asking || stage_ == Stage::filling) return first_->waits_for();
  return stage_ == Stage::done ? std::vector<int>{} : second_->waits_for();
}

}  // namespace kplan
