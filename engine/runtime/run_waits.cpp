// How it works: a run that waits for peers goes on looking, moves what else can be moved, and once nothing has come for
// some rounds asks now and then whether those that it waits for have ended, or have taken too long.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/runtime/run.hpp"

namespace kplan {

using transport::Clock;

namespace {

std::vector<int> statements_of(const auto& message) {
  std::vector<int> out;
  for (const ReadyCall& call : message.calls) out.push_back(call.call().statement);
  return out;
}

std::size_t bytes_of_elements(const auto& message) { return message.bytes - message.values_bytes; }

}  // namespace

/// Goes on looking, unless the run is only tested. The time is counted from when nothing has come for some rounds.
[[gnu::hot]] bool Runner::wait_long(const Ready& ready, const Waiting& waiting) {
  if (is_tested_) [[unlikely]] {
    has_moved_ = false;
    return look_for_lost(ready, waiting, Clock::time_point::max());
  }
  constexpr unsigned rounds_a_look = 64;
  Clock::time_point deadline{};
  for (unsigned idle = 1;; ++idle) {
    transport_->progress();
    push();
    if (ready()) return true;
    if (std::exchange(has_moved_, false)) {
      idle = 0;
      deadline = {};
      continue;
    }
    if (idle % rounds_a_look == 0) [[unlikely]] {
      if (deadline == Clock::time_point{}) deadline = Clock::now() + timeout_;
      if (look_for_lost(ready, waiting, deadline)) return true;
    }
    transport_->pause(idle);
  }
}

/// Fails where a peer that is waited for has ended, or it takes too long; whether all are ready after all.
bool Runner::look_for_lost(const Ready& ready, const Waiting& waiting, Clock::time_point deadline) {
  // Neighbours that have other values have broken off, and send nothing more.
  if (program_.uniform_history)
    if (const std::exception_ptr difference = program_.uniform_history->move_on()) {
      tell_before_failing();
      std::rethrow_exception(difference);
    }
  const bool is_late = Clock::now() > deadline;
  if (!transport_->dead() && !is_late) return false;
  for (const Wait& w : waiting()) {
    if (!transport_->is_dead(w.peer)) continue;
    // What a rank sent, or took, before it ended may have come to be seen meanwhile.
    push();
    if (ready()) return true;
    if (has_moved_) return false;
    const std::vector<Wait> still = waiting();
    if (std::ranges::none_of(still, [&](const Wait& x) { return x.peer == w.peer; })) continue;
    fail("KP-T002", fmt::format("{}; rank {} has ended", text_of(still), w.peer));
  }
  if (!is_late || has_moved_) return false;
  if (ready()) return true;
  if (has_moved_) return false;
  fail("KP-T004",
       fmt::format("{}; timed out after {:g} s", text_of(waiting()), std::chrono::duration<double>(timeout_).count()),
       "; KPLAN_TIMEOUT sets the limit");
}

std::string Runner::text_of(const std::vector<Wait>& waits) const {
  std::vector<int> statements;
  for (const Wait& w : waits) statements.insert(statements.end(), w.statements.begin(), w.statements.end());
  std::ranges::sort(statements);
  statements.erase(std::ranges::unique(statements).begin(), statements.end());
  std::vector<std::string> names;
  for (const int s : statements) names.push_back(program_.schedule.statements[static_cast<std::size_t>(s)].name);
  std::vector<std::string> texts;
  for (const Wait& w : waits) texts.push_back(w.text);
  return fmt::format("statement{} {}: rank {} waits for {}", names.size() > 1 ? "s" : "", fmt::join(names, ", "),
                     program_.schedule.rank, fmt::join(texts, ", "));
}

/// Whether uniform values that were to be the same have been found to differ; that is what has failed then.
[[gnu::hot]] bool Runner::finds_difference() {
  if (!uniform_check_.is_comparing()) return false;
  const std::exception_ptr failure = uniform_check_.look();
  if (failure) failure_ = failure;
  return failure != nullptr;
}

[[gnu::hot]] void Runner::put_values(const OutgoingMessage& m, std::byte* message) {
  program_.uniform_history->put_values(message + m.bytes - m.values_bytes);
}

[[gnu::hot]] void Runner::compare_values(const IncomingMessage& m, const std::byte* message) {
  note_difference(
      program_.uniform_history->compare(static_cast<int>(m.world_rank), message + m.bytes - m.values_bytes));
}

[[gnu::hot]] void Runner::note_difference(const std::exception_ptr& difference) {
  if (!difference) [[likely]]
    return;
  failure_ = difference;
  are_values_different_ = true;
}

/// Whether the comparison that was begun has ended, or has found a difference.
[[gnu::hot]] bool Runner::end_comparison() {
  const auto is_over = [&] {
    if (finds_difference()) [[unlikely]]
      are_values_different_ = true;
    return !uniform_check_.is_comparing() || are_values_different_;
  };
  return wait_until(is_over, [&] { return taking_part(0, uniform_check_.waits_for()); });
}

/// Neighbours of a rank whose values differ are to know of them, if they come by within a second.
void Runner::tell_before_failing() {
  program_.uniform_history->repeat();
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  for (unsigned idle = 1; !program_.uniform_history->tell() && Clock::now() < deadline; ++idle) {
    transport_->progress();
    transport_->pause(idle);
  }
}

/// Until those that are thousands of runs behind have come by.
void Runner::wait_for_history() try {
  UniformHistory& history = *program_.uniform_history;
  is_tested_ = false;
  const auto has_room = [&] {
    note_difference(history.move_on());
    return !history.is_full() || are_values_different_;
  };
  wait_until(has_room, [&] { return taking_part(0, history.waits_for()); });
  if (!are_values_different_) return;
  tell_before_failing();
  std::rethrow_exception(failure_);
} catch (...) {
  is_broken_ = true;
  throw;
}

/// Tells others what the run that begins must tell them.
[[gnu::hot]] void Runner::tell_due() {
  UniformHistory* const history = program_.uniform_history.get();
  if (!history || history->has_told_due()) [[likely]]
    return;
  wait_until([&] { return history->tell() || history->has_told_due(); },
             [&] { return taking_part(0, history->waits_for()); });
}

/// Whether what is due of the history in this run has been told and compared, or a difference was found.
[[gnu::hot]] bool Runner::end_history() {
  UniformHistory& history = *program_.uniform_history;
  const auto is_over = [&] {
    note_difference(history.move_on());
    return !history.is_waiting() || are_values_different_;
  };
  return wait_until(is_over, [&] { return taking_part(0, history.waits_for()); });
}

/// Who has not sent, or not taken part, as far as this rank knows.
std::vector<Runner::Wait> Runner::not_come(const StatementProgram& s) {
  std::vector<Wait> out;
  if (s.collective && !s.collective->is_complete()) {
    for (const OutgoingMessage& m : s.outgoing) out.push_back(taking(m));
    for (const IncomingMessage& m : s.incoming)
      if (!m.is_local) out.push_back(coming(m));
  }
  for (const IncomingMessage& m : s.incoming)
    if (!m.is_done && m.channel && !m.channel->arrived(m.next) && !(m.pieces && m.pieces->has_arrived()))
      out.push_back(coming(m));
  if (out.empty())  // they have come, and cannot be taken
    for (const IncomingMessage& m : s.incoming)
      if (!m.is_done && m.channel) out.push_back(coming(m));
  return out;
}

std::vector<Runner::Wait> Runner::taking_part(int statement, const std::vector<int>& ranks) {
  std::vector<Wait> out;
  for (const int rank : ranks) out.push_back({rank, {statement}, fmt::format("rank {} to take part", rank)});
  return out;
}

Runner::Wait Runner::coming(const IncomingMessage& m) {
  return {static_cast<int>(m.world_rank), statements_of(m),
          fmt::format("{} bytes from rank {}", bytes_of_elements(m), m.world_rank)};
}

Runner::Wait Runner::taking(const OutgoingMessage& m) {
  return {static_cast<int>(m.world_rank), statements_of(m),
          fmt::format("rank {} to take {} bytes", m.world_rank, bytes_of_elements(m))};
}

}  // namespace kplan
