// How it works: programs compute between runs, and then the lines that a run reads come from memory, those of its code
// too. Of short messages that is most of what a run costs. Where a program moves nothing but such messages, what
// start() and finish_run() do is in few lines here; what is out of the ordinary is left to them.
#include <algorithm>

#include "engine/runtime/run.hpp"

namespace kplan {
namespace {

bool is_short(const OutgoingMessage& m) {
  const bool goes_whole = !m.pieces && !m.is_carried && !m.loan && !m.fetched_from && !m.may_be_taken_back &&
                          !m.placement && m.ahead_bytes == 0;
  return goes_whole && m.bytes <= asked_ahead_bytes && !m.may_be_far;
}

bool is_short(const IncomingMessage& m) {
  const bool comes_whole = !m.pieces && !m.placement && !m.cursor && !m.may_come_ahead;
  return comes_whole && m.bytes <= asked_ahead_bytes && m.staging.empty();
}

}  // namespace

/// What short runs do, by phase; empty where there are none.
std::vector<StatementProgram*> Runner::find_short() {
  if (trials_.are_asked()) return {};
  std::vector<StatementProgram*> out;
  for (const std::vector<int>& phase : program_.phases) {
    if (phase.size() != 1) return {};
    const auto n = static_cast<std::size_t>(phase[0]);
    StatementProgram& s = program_.statements[n];
    const auto is = [](const auto& m) { return is_short(m); };
    if (varying_[n] || s.collective || !std::ranges::all_of(s.outgoing, is) || !std::ranges::all_of(s.incoming, is))
      return {};
    out.push_back(&s);
  }
  return out;
}

[[gnu::hot]] void Runner::run_short() try {
  begin_short();
  for (std::size_t phase = 0; phase < short_.size(); ++phase) {
    send_short(*short_[phase]);
    if (const Came came = finish_short(*short_[phase]); came != Came::all) [[unlikely]]
      return leave_short(phase, came);
  }
  end_short();
} catch (...) {
  break_off_and_rethrow();
}

/// Of a program of one phase, which wait_short() ends, or the usual way.
[[gnu::hot]] void Runner::start_short() try {
  begin_short();
  phase_ = finished_ = 0;
  may_wait_ = may_be_short_ = false;
  send_short(*short_[0]);
} catch (...) {
  break_off_and_rethrow();
}

[[gnu::hot]] void Runner::wait_short() try {
  if (const Came came = finish_short(*short_[0]); came != Came::all) [[unlikely]]
    return leave_short(0, came);
  end_short();
} catch (...) {
  break_off_and_rethrow();
}

[[gnu::always_inline]] void Runner::begin_short() {
  if (are_parameters_new_ || carries_values_) [[unlikely]]
    take_news();
  is_started_ = true;
  if (carries_values_) [[unlikely]]
    tell_due();
}

[[gnu::always_inline]] void Runner::send_short(StatementProgram& s) {
  for (IncomingMessage& m : s.incoming) m.is_done = false;
  for (OutgoingMessage& m : s.outgoing) {
    std::byte* slot = m.channel->send_slot(m.next);
    if (!slot) [[unlikely]]
      slot = wait_for_slot(m);
    if (m.in_place) {
      const BoundMemory& memory = memory_[static_cast<std::size_t>(m.in_place->buffer)];
      m.channel->put_in_place(m.next++, memory.base + m.in_place->offset_bytes, m.bytes);
    } else {
      context().pack(m.calls, slot);
      if (m.values_bytes > 0) [[unlikely]]
        put_values(m, slot);
      m.channel->put(m.next++, m.bytes);
    }
  }
}

/// Waits a little; whether everything has come and is sent.
[[gnu::always_inline]] Runner::Came Runner::finish_short(StatementProgram& s) {
  constexpr unsigned most_looks = 64;
  Came came = take_short(s);
  for (unsigned look = 1; came == Came::in_part && look < most_looks; ++look) {
    transport_->progress();
    came = take_short(s);
    if (came == Came::in_part) transport_->pause(look);
  }
  if (came != Came::all) [[unlikely]]
    return came;
  const auto is_over = [](const OutgoingMessage& m) { return !m.ends_when_sent || m.channel->is_sent(m.next - 1); };
  return std::ranges::all_of(s.outgoing, is_over) ? Came::all : Came::in_part;
}

/// Applies what has come.
[[gnu::always_inline]] Runner::Came Runner::take_short(StatementProgram& s) {
  Came came = Came::all;
  bool is_held_up = false;
  for (IncomingMessage& m : s.incoming) {
    if (m.is_done) continue;
    const bool must_wait = is_held_up && m.is_in_sender_order;
    const std::byte* const message = m.is_local || must_wait ? nullptr : m.channel->arrived(m.next);
    if (must_wait || (!message && !m.is_local)) {
      came = Came::in_part;
      is_held_up = is_held_up || m.is_in_sender_order;
      continue;
    }
    if (!m.is_local && !m.channel->lent(m.next).empty()) [[unlikely]]
      return Came::otherwise;
    ask_for_beginning(message, m.bytes);
    context().unpack(m.calls, message, /*has_values=*/m.is_local);
    if (m.values_bytes > 0) [[unlikely]]
      compare_values(m, message);
    if (!m.is_local) m.channel->release(m.next++);
    m.is_done = true;
  }
  return came;
}

[[gnu::always_inline]] void Runner::end_short() {
  if (carries_values_ && (program_.uniform_history->is_time() || are_values_different_)) [[unlikely]]
    return leave_short(short_.size() - 1, Came::all);
  is_started_ = is_tested_ = false;
  may_be_short_ = true;
  take_memory_back();
  ++run_;
  if (failure_) [[unlikely]]
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Leaves that phase, whose messages are not all taken or sent, and those behind it to the usual way; where some are
/// not as those of short runs are, all runs that follow, too.
void Runner::leave_short(std::size_t phase, Came came) {
  if (came == Came::otherwise) short_.clear();
  may_wait_ = true;
  is_tested_ = false;
  phase_ = phase;
  finished_ = 0;
  finish_run();
}

}  // namespace kplan
