// How it works: start() packs and sends the first phase; wait() applies what arrives, in arrival order or in sender
// order as the schedule says, and goes through the other phases. Where a rank may wait for its peers, long messages go
// in pieces: every look at what has come also sends what there is room for. A zero divisor, or what goes wrong in a
// varying pattern, does not stop a run, so that no peer waits for a message that never comes: it is thrown at the end.
#include "engine/runtime/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/runtime/zero_divisor.hpp"

namespace kplan {

using transport::Clock;

Runner::Runner(Program program, std::shared_ptr<transport::Transport> transport, std::chrono::nanoseconds timeout,
               std::shared_ptr<StartedRuns> started_runs)
    : program_(std::move(program)),
      transport_(std::move(transport)),
      has_transport_ended_(&transport_->has_ended()),
      timeout_(timeout),
      started_runs_(std::move(started_runs)),
      uniform_check_(
          *program_.bound.model,
          std::ranges::any_of(program_.schedule.statements, [](const auto& s) { return s.knowledge.is_varying; }),
          *transport_, Clock::now() + timeout_),
      trials_(transport_->rank()),
      planes_(program_),
      memory_(program_.bound.model->buffers.size()) {
  for (std::size_t b = 0; b < memory_.size(); ++b)
    if (program_.bound.model->buffers[b].is_varying) varying_buffers_.push_back(b);
  std::size_t messages = 0, longest = 0;
  for (const StatementProgram& s : program_.statements) {
    messages += s.outgoing.size();
    for (const OutgoingMessage& m : s.outgoing)
      if (m.may_be_far && !m.cursor) longest = std::max(longest, m.bytes);
  }
  ask_trials();
  made_.resize(longest);
  under_way_.reserve(messages);
  lent_.reserve(messages);
  for (std::size_t k = 0; k < program_.schedule.statements.size(); ++k) {
    const StatementSchedule& s = program_.schedule.statements[k];
    varying_.push_back(s.knowledge.is_varying ? std::make_unique<VaryingStatement>(
                                                    program_.bound, static_cast<std::size_t>(s.statement), *transport_,
                                                    Clock::now() + timeout_, std::move(program_.statements[k].rows),
                                                    program_.statements[k].enclosed)
                                              : nullptr);
    if (varying_.back()) (varying_.back()->can_settle() ? can_settle_ : letters_carry_hash_) = true;
  }
  letters_carry_hash_ = letters_carry_hash_ && !can_settle_;
  may_go_on_ = program_.phases.size() > 1 ||
               std::ranges::any_of(varying_, [](const auto& varying) { return varying != nullptr; });
  short_ = find_short();
  carries_values_ = program_.uniform_history != nullptr;
}

void Runner::fail_without_transport() try {
  throw TransportError("KP-T008",
                       fmt::format("plan {}: a run after MPI was finalised; finalise later", program_.schedule.plan));
} catch (...) {
  break_off_and_rethrow();
}

void Runner::fail(const char* code, const std::string& what, const char* hint) {
  // Ranks whose values differ break off, and others of them may be waited for.
  if (are_values_different_) std::rethrow_exception(failure_);
  throw TransportError(code, fmt::format("plan {}, {} in run {}{}", program_.schedule.plan, what, run_, hint));
}

void Runner::note_zero_divisor(const ReadyCall& call, bool is_value) {
  if (failure_) return;
  const PlanModel& plan = *program_.bound.model;
  const Statement& s = plan.statements[static_cast<std::size_t>(call.call().statement)];
  const Reduction& r = s.reductions[static_cast<std::size_t>(call.call().reduction)];
  std::string message =
      fmt::format("plan {}, statement {}: a divisor is zero in {} on rank {}, run {}", plan.name, s.name,
                  is_value ? "a value" : fmt::format("operator `{}`", r.operator_name), program_.schedule.rank, run_);
  if (is_value && !s.is_pull) message += zero_divisor_environment(program_.bound, memory_, s, r);
  failure_ = std::make_exception_ptr(RunError("KP-R001", message));
}

[[gnu::hot]] void Runner::begin(const std::vector<int>& phase) {
  finished_ = 0;
  for (const int number : phase) {
    const auto n = static_cast<std::size_t>(number);
    if (varying_[n]) varying_[n]->begin(context(), std::exchange(compared_, {}));
    else begin_statement(program_.statements[n]);
  }
}

/// Where the next message is to be packed.
[[gnu::hot]] std::byte* Runner::wait_for_slot(OutgoingMessage& m) {
  std::byte* slot = nullptr;
  wait_until([&] { return (slot = m.channel->send_slot(m.next)) != nullptr; },
             [&] { return std::vector<Wait>{taking(m)}; });
  return slot;
}

/// Packs what goes to each rank, or to all of them, and starts the operation.
void Runner::begin_collective(StatementProgram& s) {
  wait_until([&] { return s.collective->is_complete(); }, [&] { return not_come(s); });
  std::byte* last = nullptr;
  for (OutgoingMessage& m : s.outgoing) {
    std::byte* const part = s.collective->outgoing(static_cast<int>(m.world_rank));
    if (part != last) context().pack(m.calls, part);
    last = part;
  }
  s.collective->start();
}

[[gnu::hot]] void Runner::begin_statement(StatementProgram& s) {
  for (IncomingMessage& m : s.incoming) {
    m.is_done = m.comes_whole = false;
    m.taken = 0;
    if (!m.staging.empty()) context().pack(m.staging, m.staged.data());
    if (m.pieces) m.pieces->begin_run();
    if (m.placement)
      m.channel->expect(m.next, trials_.goes(RunWay::in_place) ? transport::Lies::in_place : transport::Lies::in_slot);
  }
  if (s.collective) return begin_collective(s);
  int in_pieces = -1;  // the last statement of which a message goes so, and carries others
  for (OutgoingMessage& m : s.outgoing)
    if ((!m.is_carried || m.statement != in_pieces) && send(m)) in_pieces = m.statement;
}

/// Sends a message, lends it, or begins to send its pieces; whether these carry those of others.
[[gnu::hot]] bool Runner::send(OutgoingMessage& m) {
  if (m.pieces) m.pieces->begin_run();
  if (m.loan && m.loan->is_wanted() && lend(m)) return false;
  if (m.fetched_from && trials_.goes(RunWay::fetched) && lend_to_fetch(m)) return false;
  if (m.pieces && may_wait_ && m.pieces->are_better(trials_.goes(RunWay::in_pieces))) {
    m.pieces->begin();
    under_way_.push_back(&m);
    return true;
  }
  std::byte* const slot = wait_for_slot(m);
  const std::uint64_t seq = m.next++;
  if (m.in_place) {
    const std::byte* const region =
        memory_[static_cast<std::size_t>(m.in_place->buffer)].base + m.in_place->offset_bytes;
    m.channel->put_in_place(seq, region, m.bytes);
    if (m.may_be_taken_back) note_lent(m);
    return false;
  }
  if (m.placement && trials_.goes(RunWay::in_place)) {
    m.channel->put_placed(seq);
    return false;
  }
  const transport::Stores stores = m.may_be_far ? m.channel->best_stores(seq) : transport::Stores::cached;
  if (stores != transport::Stores::cached) {
    pack_for_far(m, slot, stores);
  } else if (m.ahead_bytes > 0) {
    pack_ahead(m, seq, slot);
  } else {
    context().pack(m.calls, slot);
    if (m.values_bytes > 0) put_values(m, slot);
  }
  m.channel->put(seq, m.bytes);
  return false;
}

/// Packs some of it at a time, and lets that go ahead.
void Runner::pack_ahead(OutgoingMessage& m, std::uint64_t seq, std::byte* slot) {
  m.cursor->restart();
  for (std::size_t packed = 0; packed < m.bytes;) {
    const std::size_t count = std::min(m.ahead_bytes, m.bytes - packed);
    if (const ReadyCall* faulty = m.cursor->pack(m.calls, memory_, slot + packed, count, transport::Stores::cached))
      note_zero_divisor(*faulty, true);
    packed += count;
    m.channel->put_first(seq, packed);
  }
}

/// Packs for far lines: in memory of this rank's own, and copies from there.
void Runner::pack_for_far(OutgoingMessage& m, std::byte* slot, transport::Stores stores) {
  if (!m.cursor) {
    context().pack(m.calls, made_.data());
    if (m.values_bytes > 0) put_values(m, made_.data());
    return transport::copy_to_slot(slot, made_.data(), m.bytes, stores);
  }
  m.cursor->restart();
  if (const ReadyCall* faulty = m.cursor->pack(m.calls, memory_, slot, m.bytes, stores))
    note_zero_divisor(*faulty, true);
}

/// Sends a piece of each message under way that has room.
void Runner::push_pieces() {
  std::erase_if(under_way_, [this](OutgoingMessage* message) {
    OutgoingMessage& m = *message;
    const std::size_t left = m.pieces->left();
    const ReadyCall* faulty = m.pieces->advance(m.calls, memory_);
    if (m.pieces->is_held_up()) faulty = send_rest(m);
    if (faulty) note_zero_divisor(*faulty, true);
    has_moved_ = has_moved_ || m.pieces->left() < left;
    return m.pieces->left() == 0;
  });
}

/// Sends what is left of a message in pieces as a whole, to all that its pieces go to, if there is room for it.
const ReadyCall* Runner::send_rest(OutgoingMessage& m) {
  std::byte* const slot = m.channel->send_slot(m.next);
  const auto has_room = [](OutgoingMessage* c) { return c->channel->send_slot(c->next) != nullptr; };
  if (!slot || !std::ranges::all_of(m.carried, has_room)) return nullptr;
  const std::size_t left = m.pieces->left();
  const ReadyCall* const faulty = m.pieces->pack_rest(m.calls, memory_, slot);
  for (OutgoingMessage* c : m.carried) {
    std::memcpy(c->channel->send_slot(c->next), slot, left);
    c->channel->put(c->next++, left);
  }
  m.channel->put(m.next++, left);
  return faulty;
}

[[gnu::hot]] void Runner::apply(IncomingMessage& m, const std::byte* message) {
  const bool is_far = m.channel && m.bytes > asked_ahead_bytes && m.channel->is_far(m.next);
  if (!m.is_local) ask_for_beginning(message, m.bytes);
  if (is_far) context().unpack_ahead(m.calls, message);
  else context().unpack(m.calls, message, /*has_values=*/m.is_local && m.staging.empty());
  m.is_done = true;
}

/// The same of what has come of it, a part at a time while the rest of it, or other messages of the statement, are
/// under way that this rank has to move: their other ends would wait for it meanwhile.
void Runner::apply_in_parts(StatementProgram& s, IncomingMessage& m, std::span<const std::byte> come) {
  const auto is_sent = [](const OutgoingMessage& o) { return o.next == 0 || o.channel->is_sent(o.next - 1); };
  if (m.taken == 0) m.cursor->restart();
  while (m.taken < come.size()) {
    const bool is_alone = come.size() == m.bytes && std::ranges::all_of(s.outgoing, is_sent) &&
                          std::ranges::all_of(s.incoming, [&](const auto& i) { return i.is_done || &i == &m; });
    const std::size_t left = come.size() - m.taken, count = is_alone ? left : std::min(left, m.part_bytes);
    if (const ReadyCall* faulty = m.cursor->unpack(m.calls, memory_, come.data() + m.taken, count))
      note_zero_divisor(*faulty, false);
    m.taken += count;
    if (m.taken < m.bytes) transport_->progress();
  }
  m.is_done = m.taken == m.bytes;
}

/// Applies what has come of it before the rest, if some has.
void Runner::take_ahead(StatementProgram& s, IncomingMessage& m) {
  const std::span<const std::byte> come = m.channel->arrived_first(m.next);
  if (come.size() <= m.taken) return;
  apply_in_parts(s, m, come);
  has_moved_ = true;
}

/// Applies what has come; whether everything has.
[[gnu::hot]] bool Runner::take_arrived(StatementProgram& s) {
  bool is_complete = !s.collective || s.collective->is_complete(), is_held_up = false;
  for (IncomingMessage& m : s.incoming) {
    if (m.is_done) continue;
    if (!(is_held_up && m.is_in_sender_order) && take(s, m)) continue;
    is_complete = false;
    is_held_up = is_held_up || m.is_in_sender_order;
  }
  return is_complete;
}

/// Applies the next piece of the message if it has come.
bool Runner::take_piece(IncomingMessage& m) {
  const ReadyCall* faulty = nullptr;
  const IncomingPieces::Came came = m.pieces->advance(m.calls, memory_, faulty);
  if (faulty) note_zero_divisor(*faulty, false);
  if (came == IncomingPieces::Came::nothing) return false;
  has_moved_ = true;
  m.is_done = came == IncomingPieces::Came::last_piece;
  if (m.is_done) note_way(m, Way::in_pieces);
  return true;
}

/// Applies the message, or the next piece of it, if it has come; whether the whole is done.
[[gnu::hot]] bool Runner::take(StatementProgram& s, IncomingMessage& m) {
  if (m.is_local) {
    apply(m, m.staged.data());
    return true;
  }
  if (s.collective) {
    if (!s.collective->is_complete()) return false;
    apply(m, s.collective->incoming(static_cast<int>(m.world_rank)));
    return true;
  }
  if (m.pieces && !m.comes_whole) {
    if (take_piece(m)) return m.is_done;
    if (!m.channel->arrived(m.next)) return false;
    // What was sent in pieces before that is seen now.
    if (take_piece(m)) return m.is_done;
    if (!m.pieces->have_all_come()) return false;
    m.comes_whole = true;
  }
  if (m.may_come_ahead) take_ahead(s, m);
  const std::byte* const message = m.channel->arrived(m.next);
  if (!message) return false;
  const auto regions = m.channel->lent(m.next);
  if (m.pieces && m.channel->is_to_be_fetched(m.next)) {
    if (!take_fetched(m)) return false;
    note_way(m, Way::fetched);
  } else if (!regions.empty()) {
    if (!take_lent(m, regions)) return false;
  } else if (m.pieces && m.pieces->awaits_rest()) {
    if (const ReadyCall* faulty = m.pieces->take(m.calls, memory_, message, m.pieces->left()))
      note_zero_divisor(*faulty, false);
    m.is_done = true;
    note_way(m, Way::in_pieces);
  } else if (m.placement && trials_.goes(RunWay::in_place)) {
    m.is_done = true;
  } else if (m.cursor) {
    apply_in_parts(s, m, {message, m.bytes});
  } else {
    apply(m, message);
    if (m.values_bytes > 0) compare_values(m, message);
    if (m.pieces) note_way(m, Way::whole);
  }
  has_moved_ = true;
  m.channel->release(m.next++);
  return true;
}

[[gnu::hot]] bool Runner::finish_statement(StatementProgram& s) {
  return wait_until([&] { return take_arrived(s); }, [&] { return not_come(s); });
}

/// Takes up where it has stopped before. Whether the phase has ended, which is always so unless the run is only tested.
[[gnu::hot]] bool Runner::finish(const std::vector<int>& phase) {
  // What is there, such as a rank's own share, need not wait for the messages of statements before.
  for (std::size_t k = finished_ + 1; k < phase.size(); ++k)
    if (const auto n = static_cast<std::size_t>(phase[k]); !varying_[n]) take_arrived(program_.statements[n]);
  for (; finished_ < phase.size(); ++finished_) {
    const int number = phase[finished_];
    const auto n = static_cast<std::size_t>(number);
    if (!varying_[n]) {
      if (!finish_statement(program_.statements[n])) return false;
      continue;
    }
    VaryingStatement& varying = *varying_[n];
    const RunContext run = context();
    bool is_different = false;
    const bool is_over = wait_until([&] { return varying.advance(run) || (is_different = finds_difference()); },
                                    [&] { return taking_part(number, varying.waits_for()); });
    if (!is_over) return false;
    if (is_different) std::rethrow_exception(std::exchange(failure_, nullptr));
    varying.apply(run);
    if (!failure_) failure_ = varying.failure();
  }
  for (const int number : phase)
    for (OutgoingMessage& m : program_.statements[static_cast<std::size_t>(number)].outgoing) {
      if (!m.ends_when_sent || m.next == 0) continue;
      const bool is_sent =
          wait_until([&] { return m.channel->is_sent(m.next - 1); }, [&] { return std::vector<Wait>{taking(m)}; });
      if (!is_sent) return false;
    }
  return wait_until_taken(under_way_) && wait_until_taken(lent_);
}

inline bool Runner::wait_until_taken(const std::vector<OutgoingMessage*>& messages) {
  if (messages.empty()) [[likely]]
    return true;
  return wait_until([&] { return messages.empty(); },
                    [&] {
                      std::vector<Wait> out;
                      for (const OutgoingMessage* m : messages) {
                        out.push_back(taking(*m));
                        if (&messages == &under_way_)  // in pieces, which reach the others too
                          for (const OutgoingMessage* c : m->carried) out.push_back(taking(*c));
                      }
                      return out;
                    });
}

/// What is new since the last run: the values of parameters, where buffers lie.
[[gnu::hot]] void Runner::take_news() {
  UniformHistory* const history = program_.uniform_history.get();
  if (history) {
    if (history->is_full()) [[unlikely]]
      wait_for_history();
    history->begin(run_);
  }
  std::exception_ptr outside;
  if (!planes_.empty() && (are_parameters_new_ || are_bindings_new_)) {
    outside = planes_.put(program_, memory_);
    are_bindings_new_ = are_bindings_new_ || outside;
    are_moving_places_told_ = false;
  }
  if (are_parameters_new_) {
    for (StatementProgram& s : program_.statements) s.set_varying(program_.bound.state.parameters);
    if (history && std::exchange(are_uniform_values_new_, false)) history->note(program_.bound);
    are_parameters_new_ = false;
  }
  if (are_bindings_new_) look_at_bindings();
  for (const std::size_t b : varying_buffers_) program_.bound.state.contents[b] = memory_[b].base;
  failure_ = outside;
}

[[gnu::hot]] void Runner::start(bool may_wait) {
  if (is_broken_)
    throw TransportError(
        "KP-T011",
        fmt::format("plan {}: an earlier run failed; the executable cannot be used any more", program_.schedule.plan));
  if (is_started_)
    throw PlanError("KP-R010",
                    fmt::format("plan {}: started twice; wait() ends the run before", program_.schedule.plan));
  may_be_short_ = false;
  take_news();
  is_tested_ = false;
  may_wait_ = may_wait;
  is_started_ = true;
  try {
    tell_due();
    if (trials_.are_asked()) [[unlikely]]
      begin_trials();
    const std::span<const int> compared = uniform_check_.due(/*must=*/can_settle_);
    if (letters_carry_hash_) compared_ = compared;
    else if (!compared.empty()) uniform_check_.begin(program_.bound, run_, compared);
    phase_ = 0;
    const auto& phases = program_.phases;
    if (!phases.empty()) begin(phases[0]);
    if (!may_wait) [[unlikely]]
      go_on();
  } catch (...) {
    break_off_and_rethrow();
  }
}

void Runner::wait_for_all() {
  is_tested_ = false;
  if (trials_.are_asked()) [[unlikely]]
    trials_.come_back(Clock::now());
  finish_run();
}

/// The phase that was begun and all others. Whether they have ended, which is always so unless the run is only tested.
[[gnu::hot]] bool Runner::finish_phases() {
  const auto& phases = program_.phases;
  if (!phases.empty() && !finish(phases[phase_])) return false;
  while (phase_ + 1 < phases.size()) {
    may_wait_ = true;
    if (is_tested_ && !can_begin(phases[phase_ + 1])) return false;
    begin(phases[++phase_]);
    if (!finish(phases[phase_])) return false;
  }
  return true;
}

/// Whether the run has ended, which is always so unless it is only tested.
[[gnu::hot]] bool Runner::finish_run() try {
  stop_going_on();
  if (is_broken_) [[unlikely]] {  // while another run was waited for
    is_started_ = false;
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  if (!finish_phases()) return false;
  if (!program_.uniform_history && !uniform_check_.is_comparing())
    for (const auto& varying : varying_)
      if (varying && !varying->differing().empty()) uniform_check_.begin(program_.bound, run_, varying->differing());
  if (uniform_check_.is_comparing() && !end_comparison()) return false;
  if (program_.uniform_history && program_.uniform_history->is_time() && !end_history()) return false;
  if (are_values_different_) [[unlikely]] {
    is_broken_ = true;
    if (program_.uniform_history) tell_before_failing();
  }
  if (trials_.are_asked()) [[unlikely]]
    trials_.end(Clock::now());
  is_started_ = is_tested_ = false;
  take_memory_back();
  ++run_;
  may_be_short_ = !short_.empty() && !are_bindings_new_ && !is_broken_;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return true;
} catch (...) {
  break_off_and_rethrow();
}

}  // namespace kplan
