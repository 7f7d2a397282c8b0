// How it works: a run that is tested goes the way of one that is waited for, and comes back where that would wait. So
// do, while a rank waits for something else, those that it has started before and that have several phases, or patterns
// found at the run. Nothing here waits: a phase begins when all that it sends has room.
#include <algorithm>
#include <utility>

#include "engine/runtime/run.hpp"

namespace kplan {

using transport::Clock;

void StartedRuns::add(Runner& run) {
  if (runs_.empty()) transport_->keep_moving(*this);
  runs_.push_back(&run);
}

void StartedRuns::remove(Runner& run) {
  remove_if([&](const Runner* r) { return r == &run; });
}

void StartedRuns::move_on() {
  if (std::exchange(is_moving_, true)) return;
  remove_if([](Runner* run) { return !run->move_on(); });
  is_moving_ = false;
}

template <class F>
void StartedRuns::remove_if(const F& is_to_go) {
  if (std::erase_if(runs_, is_to_go) > 0 && runs_.empty()) transport_->let_go(*this);
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
  if (trials_.are_asked()) trials_.leave(Clock::now());
}

bool Runner::test() try {
  if (!is_started_) return true;
  require_transport();
  is_tested_ = true;
  if (trials_.are_asked()) trials_.come_back(Clock::now());
  transport_->progress();
  if (finish_run()) return true;
  go_on();
  return false;
} catch (...) {
  break_off_and_rethrow();
}

bool Runner::move_on() {
  try {
    is_tested_ = true;
    (void)finish_phases();
    return true;
  } catch (...) {
    failure_ = std::current_exception();
    goes_on_ = false;
    break_off();
    return false;
  }
}

}  // namespace kplan
