// How it works: what a run does for messages that are not packed, but lie in the memory of one end: those that are
// lent, to be read there or fetched, and those that the transport takes from there or puts there.
#include <algorithm>
#include <map>

#include "engine/runtime/run.hpp"

namespace kplan {

using transport::Clock;

void Runner::note_lent(OutgoingMessage& m) {
  m.vain_looks = 0;
  lent_.push_back(&m);
}

/// Lends the message; false where it must be sent.
bool Runner::lend(OutgoingMessage& m) {
  wait_for_slot(m);
  if (!m.loan->lend(*m.channel, m.next, memory_)) return false;
  ++m.next;
  note_lent(m);
  return true;
}

/// The same where its receiver fetches it.
bool Runner::lend_to_fetch(OutgoingMessage& m) {
  wait_for_slot(m);
  m.fetched_from->tell(*m.channel, memory_);
  if (!m.channel->lend_to_fetch(m.next)) return false;
  ++m.next;
  note_lent(m);
  return true;
}

/// Where the buffers lie now: which messages can be lent from there, and what their receivers are to be told of them.
void Runner::look_at_bindings() {
  std::vector<std::pair<OutgoingLoan*, const Message*>> loans;
  std::map<int, WrittenLines> written;  // by a phase's first statement
  const auto written_with = [&](int statement) -> const WrittenLines& {
    const auto& phase = *std::ranges::find_if(program_.schedule.phases, [&](const std::vector<int>& p) {
      return std::ranges::find(p, statement) != p.end();
    });
    const auto known = written.find(phase[0]);
    if (known != written.end()) return known->second;
    return written.emplace(phase[0], WrittenLines(program_.bound, program_.schedule, phase)).first->second;
  };
  for (StatementProgram& s : program_.statements) {
    for (OutgoingMessage& m : s.outgoing) {
      OutgoingLoan* const loan = m.loan.get();
      if (!loan) continue;
      const StatementSchedule& schedule = program_.schedule.statements[static_cast<std::size_t>(m.statement)];
      const Message& message = *std::ranges::find(schedule.sends, m.peer, &Message::peer);
      const Statement& statement = program_.bound.model->statements[static_cast<std::size_t>(m.statement)];
      loan->look_at(memory_, *transport_, [&](const LendingLimits& limits) {
        return better_lent(statement, schedule, message, written_with(m.statement), limits);
      });
      if (loan->is_possible() && !loan->is_described()) loans.emplace_back(loan, &message);
    }
  }
  if (!loans.empty()) program_.descriptions.push_back(describe(loans, *transport_));
  are_places_told_ = false;
  are_bindings_new_ = false;  // else the next run looks again
}

/// Where the transport finds placed messages. That takes as long as a few runs, so not before a run needs it.
void Runner::tell_places() {
  const auto tell = [this](auto& m) {
    if (m.placement && (!are_places_told_ || m.placement->is_moving())) m.placement->tell(*m.channel, memory_);
  };
  for (StatementProgram& s : program_.statements) {
    std::ranges::for_each(s.incoming, tell);
    std::ranges::for_each(s.outgoing, tell);
  }
  are_places_told_ = are_moving_places_told_ = true;
}

/// Looks which lent messages have been read; those that nobody comes for are taken back and sent.
void Runner::collect_loans() {
  std::erase_if(lent_, [this](OutgoingMessage* message) {
    OutgoingMessage& m = *message;
    const std::uint64_t seq = m.next - 1;
    if (m.channel->is_sent(seq)) {
      if (m.loan) m.loan->note_read();
      return has_moved_ = true;
    }
    if (++m.vain_looks <= most_vain_looks || !m.channel->take_back(seq)) return false;
    if (m.loan) m.loan->note_taken_back();
    context().pack(m.calls, m.channel->send_slot(seq));
    m.channel->put(seq, m.bytes);
    return has_moved_ = true;
  });
}

/// Applies a lent message; false where that is not possible, and the sender has to send it.
bool Runner::take_lent(IncomingMessage& m, std::span<const std::byte* const> regions) {
  if (!m.loan || m.loan->description() != regions.back()) {
    const StatementSchedule& schedule = program_.schedule.statements[static_cast<std::size_t>(m.statement)];
    const auto message = std::ranges::find(schedule.receives, m.peer, &Message::peer);
    m.loan = std::make_unique<IncomingLoan>(program_.bound, schedule, *message, regions.back(), program_.wait_for_code);
  }
  if (!m.loan->is_usable()) {
    m.channel->decline(m.next);
    return false;
  }
  if (!long_targets_.empty()) m.loan->go_past_caches(do_targets_go_past_caches_);
  if (m.is_own_first) apply_own(m);
  if (const ReadyCall* faulty = m.loan->apply(regions, memory_)) note_zero_divisor(*faulty, false);
  if (!m.is_own_first) apply_own(m);
  m.is_done = true;
  return true;
}

/// Fetches a message and applies it, in parts where it does not go into place as it is. False where some of it cannot
/// be had: the sender sends it then, or has ended.
bool Runner::take_fetched(IncomingMessage& m) {
  if (m.fetched_to) {
    m.fetched_to->tell(*m.channel, memory_);
    if (m.channel->fetch(m.next)) return m.is_done = true;
    m.channel->decline(m.next);
    return false;
  }
  fetched_.resize(std::max(fetched_.size(), m.pieces->piece_bytes()));
  do {
    const std::size_t count = std::min(m.pieces->left(), m.pieces->piece_bytes());
    if (!m.channel->fetch_part(m.next, m.pieces->taken(), fetched_.data(), count)) {
      if (m.pieces->taken() == 0) m.channel->decline(m.next);
      return false;
    }
    if (const ReadyCall* faulty = m.pieces->take(m.calls, memory_, fetched_.data(), count))
      note_zero_divisor(*faulty, false);
  } while (m.pieces->taken() > 0);
  return m.is_done = true;
}

/// The share of this rank that a message's kernels apply too, where they do not unpack it.
void Runner::apply_own(IncomingMessage& m) {
  for (ReadyCall& call : m.own) call(memory_, nullptr);
}

/// Nothing of this rank's memory is read or written by others any more when it returns, or those that read it take more
/// than a second, those that are in the middle of writing it more than the time-out.
void Runner::break_off() {
  is_broken_ = true;
  may_be_short_ = false;
  for (std::unique_ptr<VaryingStatement>& varying : varying_) varying.reset();  // with their exchanges
  const auto is_written = [this](const IncomingMessage& m) {
    try {
      return m.placement && !m.is_done && m.channel && !transport_->is_dead(static_cast<int>(m.world_rank)) &&
             !m.channel->give_up(m.next);
    } catch (const TransportError&) {
      return false;  // nothing more can be done about it
    }
  };
  // Each is given up at every look: what nobody has sent yet is not to come any more.
  const auto count_written = [&] {
    std::ptrdiff_t count = 0;
    for (const StatementProgram& s : program_.statements) count += std::ranges::count_if(s.incoming, is_written);
    return count;
  };
  const Clock::time_point begin = Clock::now();
  for (unsigned idle = 1;; ++idle) {
    std::erase_if(lent_, [](const OutgoingMessage* m) {
      return m->channel->take_back(m->next - 1) || m->channel->is_sent(m->next - 1);
    });
    const Clock::duration waited = Clock::now() - begin;
    const bool is_read = !lent_.empty() && waited < std::chrono::seconds(1);
    if ((count_written() == 0 || waited >= timeout_) && !is_read) break;
    transport_->pause(idle);
  }
  lent_.clear();
  take_memory_back();
}

Runner::~Runner() {
  stop_going_on();
  if (!std::exchange(is_started_, false) || is_broken_) return;
  try {
    break_off();
  } catch (const std::exception&) {  // there is nobody to tell
  }
}

/// Where a run has thrown: breaks it off, unless it had ended. For handlers of exceptions.
void Runner::break_off_and_rethrow() {
  stop_going_on();
  if (std::exchange(is_started_, false)) break_off();
  throw;
}

}  // namespace kplan
