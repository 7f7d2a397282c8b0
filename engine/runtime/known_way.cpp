#include "engine/runtime/known_way.hpp"

#include <algorithm>
#include <utility>

#include "engine/analysis/planes.hpp"
#include "engine/runtime/row_choice.hpp"
#include "engine/schedule/ends.hpp"

namespace kplan {
namespace {

/// Among so many ranks each is everyone's neighbour in the comparison of uniform values, so that to know sources spares
/// nothing.
constexpr int most_neighbours = 3;

/// What goes by rows when it is new had better do so until it is worth a schedule, which takes as long as some ten
/// runs.
constexpr int runs_by_rows = 4;

/// Whether it is outside its buffer, or memory of no elements.
bool is_nowhere(const RunContext& context, const Expr& plane) {
  return !context.memory[static_cast<std::size_t>(plane.id)].base;
}

}  // namespace

KnownWay::KnownWay(const BoundPlan& bound, std::size_t number)
    : statement_(bound.model->statements[number]),
      number_(number),
      knowledge_(infer_knowledge(*bound.model, statement_)),
      rank_(static_cast<int>(bound.state.rank)),
      planes_(planes_of(*bound.model, statement_)),
      patterns_(bound, statement_, goes_by_rows_when_new(*bound.model, with_own_rank(statement_)) ? runs_by_rows : 1),
      can_settle_(patterns_.can_settle() && bound.state.size > most_neighbours) {}

/// Packs messages that their receivers expect straight into the letters, or gives these bodies.
[[gnu::hot]] void KnownWay::send(const RunContext& context, const Outbox& to) {
  arrived_.clear();
  if (!is_recalled_) find(context);
  if (!now_->has_part()) return;
  if (!are_planes_inside_) [[unlikely]]
    require_planes(context);
  least_body_bytes_ = to.exchange.least_body_bytes();
  if (!is_recalled_ || !now_->sending) {
    now_->make_sending(context, reuse());
    now_->place_sent(least_body_bytes_);
  }
  for (std::size_t k = 0; k < now_->sending->outgoing.size(); ++k) {
    OutgoingMessage& m = now_->sending->outgoing[k];
    const Message& sent = now_->schedule.sends[k];
    if (sent.element_count == 0) continue;
    const auto rank = static_cast<int>(m.world_rank);
    const std::size_t bytes = message_letter_bytes(m.bytes);
    std::byte* letter = to.letters.add_in_room(to.exchange, rank, bytes);
    if (!letter && least_body_bytes_ > 0 && m.bytes >= least_body_bytes_) [[unlikely]] {
      letter = to.letters.add(to.exchange, rank, message_letter_bytes(0));
      write_body_letter(letter, to.uniform_hash, sent);
      add_body(context, to, m);
      continue;
    }
    if (!letter) letter = to.letters.add(to.exchange, rank, bytes);
    context.pack(m.calls, begin_message_letter(letter, to.uniform_hash, &sent));
  }
}

/// To the letter that was added last.
void KnownWay::add_body(const RunContext& context, const Outbox& to, OutgoingMessage& m) {
  if (!m.placement) return context.pack(m.calls, to.letters.add_body(m.bytes));
  blocks_.clear();
  m.placement->list_blocks(context.memory, blocks_);
  to.letters.add_body(blocks_);
}

[[gnu::hot]] void KnownWay::recall(const RunContext& context) {
  FoundPattern* const known = patterns_.recall(context.bound.state);
  if (patterns_.can_settle()) standing_ = patterns_.meet();
  is_recalled_ = known != nullptr;
  now_ = known ? known : &found_;
  are_planes_inside_ = are_planes_inside(context);
}

void KnownWay::find(const RunContext& context) {
  found_.bound.reset();
  StatementDraft draft = draft_statement(context.bound, number_, knowledge_);
  found_.bound = draft.bound;
  found_.schedule = draft.schedule;
  if (!found_.has_part()) return;
  found_.schedule = finish_statement(std::move(draft), {});
  now_ = patterns_.keep(found_);
}

/// Where something moves, all planes must be inside their buffers.
void KnownWay::require_planes(const RunContext& context) const {
  const StatementSchedule& s = now_->schedule;
  if (s.sends.empty() && s.receives.empty() && s.local_send.empty()) return;
  for (const Expr* plane : planes_)
    if (is_nowhere(context, *plane)) first_of_plane(context.bound, statement_, *plane);  // says what is wrong
}

/// The same on all ranks, whatever memory they have.
[[gnu::hot]] bool KnownWay::are_planes_inside(const RunContext& context) const {
  for (const Expr* plane : planes_) {
    if (!is_nowhere(context, *plane)) [[likely]]
      continue;
    const auto whole = static_cast<std::size_t>(context.bound.model->storage_of(plane->id));
    if (context.memory[whole].base) return false;
    try {
      first_of_plane(context.bound, statement_, *plane);
    } catch (const PlanError&) {
      return false;
    }
  }
  return true;
}

[[gnu::hot]] void KnownWay::take_letter(LetterKind kind, const transport::ReceivedLetter& letter) {
  if (kind != LetterKind::pattern && kind != LetterKind::pattern_and_body) fail_damaged_letter();
  arrived_.add(read_pattern_letter(letter.bytes, now_->bound->number_of(letter.from)));
}

[[gnu::hot]] void KnownWay::take(const RunContext& context) {
  arrived_.order();
  if (!now_->has_part()) return;
  compare_ends();
  if (!is_recalled_ || !now_->receiving) {
    now_->make_receiving(context, reuse());
    now_->place_received(least_body_bytes_);
  }
  now_->stage(context);
}

/// They must have found the same.
[[gnu::hot]] void KnownWay::compare_ends() const {
  const auto expect = [&](const Message* mine, std::int64_t peer) {
    const ArrivedPattern* const arrived = arrived_.from(peer);
    const std::int64_t sent = arrived ? arrived->element_count : 0;
    const std::int64_t expected = mine ? mine->element_count : 0;
    if (sent == expected && (sent == 0 || arrived->digest == mine->digest)) return;
    throw ends_differ(*now_->bound->model, statement_, now_->schedule.world_rank_of(peer), rank_, sent, expected);
  };
  for (const Message& m : now_->schedule.receives) expect(&m, m.peer);
  for (const ArrivedPattern& arrived : arrived_.all())
    if (std::ranges::find(now_->schedule.receives, arrived.from, &Message::peer) == now_->schedule.receives.end())
      expect(nullptr, arrived.from);
}

std::span<const std::span<std::byte>> KnownWay::places(int from, const std::vector<BoundMemory>& memory) {
  std::vector<IncomingMessage>& incoming = now_->receiving->incoming;
  const auto is_from = [&](const IncomingMessage& m) { return !m.is_local && std::cmp_equal(m.world_rank, from); };
  const auto m = std::ranges::find_if(incoming, is_from);  // there is one, or the ends would differ
  const auto k = static_cast<std::size_t>(m - incoming.begin());
  if (places_.size() <= k) places_.resize(k + 1);
  places_[k].clear();
  if (m->placement) {
    m->placement->list_blocks(memory, places_[k]);
  } else {
    if (staged_->size() <= k) staged_->resize(k + 1);
    Unfilled<std::byte>& staged = (*staged_)[k];
    if (staged.size() < m->bytes) staged.resize(m->bytes);
    places_[k].emplace_back(staged.data(), m->bytes);
    arrived_.set_payload(m->peer, places_[k].back());
  }
  return places_[k];
}

[[gnu::hot]] std::span<const int> KnownWay::peers_of(const std::vector<Message>& messages) {
  peers_.clear();
  if (!now_->has_part()) return peers_;
  for (const Message& m : messages)
    if (m.element_count > 0) peers_.push_back(static_cast<int>(now_->schedule.world_rank_of(m.peer)));
  std::ranges::sort(peers_);
  return peers_;
}

}  // namespace kplan
