// How it works: while a rank waits for one run, those that it has started before, and that have several phases, take
// what has come and begin their next phases. A run that is tested goes the way of one that is waited for, and comes
// back where that would wait. Nothing here waits: a phase begins when all that it sends has room.
#include <algorithm>

#include "engine/runtime/run.hpp"

namespace kplan {

using transport::Clock;

void StartedRuns::move_all() {
  std::erase_if(runs_, [](Runner* run) { return !run->move_on(); });
}

/// Whether the statements have ended on this rank; takes what has come.
bool Runner::is_over(const std::vector<int>& phase) {
  bool out = true;
  for (const int number : phase) {
    StatementProgram& s = program_.statements[static_cast<std::size_t>(number)];
    out = take_arrived(s) && out;
    for (OutgoingMessage& m : s.outgoing)
      out = out && (!m.ends_when_sent || m.next == 0 || m.channel->is_sent(m.next - 1));
  }
  return out && under_way_.empty() && lent_.empty();
}

/// Whether what they send has room.
bool Runner::can_begin(const std::vector<int>& phase) const {
  return std::ranges::all_of(phase, [&](int number) {
    const StatementProgram& s = program_.statements[static_cast<std::size_t>(number)];
    if (s.collective) return s.collective->is_complete();
    return std::ranges::all_of(s.outgoing,
                               [](const OutgoingMessage& m) { return m.channel->send_slot(m.next) != nullptr; });
  });
}

/// The program does something else until it waits or tests.
void Runner::go_on() {
  goes_on_ = may_go_on_;
  if (goes_on_) started_runs_->add(*this);
  if (can_place_) place_trial_.leave(Clock::now());
}

bool Runner::test() try {
  if (!is_started_) return true;
  is_tested_ = true;
  if (can_place_) place_trial_.come_back(Clock::now());
  transport_->progress();
  started_runs_->move_on();
  if (finish_run()) return true;
  go_on();
  return false;
} catch (...) {
  break_off_and_rethrow();
}

bool Runner::move_on() {
  const auto& phases = program_.schedule.phases;
  try {
    push();
    while (phase_ + 1 < phases.size() && is_over(phases[phase_]) && can_begin(phases[phase_ + 1])) {
      may_wait_ = true;
      begin(phases[++phase_]);
    }
    return true;
  } catch (...) {
    failure_ = std::current_exception();
    goes_on_ = false;
    break_off();
    return false;
  }
}

}  // namespace kplan
