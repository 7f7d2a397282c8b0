// How it works: a plan's messages and calls say what its runs can try; each run that begins asks the trials how to go,
// and messages that come say how ranks below go.
#include <algorithm>

#include "engine/runtime/run.hpp"
#include "transports/environment.hpp"

namespace kplan {

using transport::Clock;

void Runner::ask_trials() {
  bool can_place = false, are_blocks_long = true, can_fetch = false, can_go_in_pieces = false, are_many = false;
  const auto note_placement = [&](const Placement* placement) {
    if (!placement) return;
    can_place = true;
    are_blocks_long = are_blocks_long && placement->has_long_blocks();
  };
  const auto note_targets = [&](std::vector<ReadyCall>& calls) {
    for (ReadyCall& call : calls)
      if (call.may_go_past_caches()) long_targets_.push_back(&call);
  };
  for (StatementProgram& s : program_.statements) {
    for (IncomingMessage& m : s.incoming) {
      note_placement(m.placement.get());
      note_targets(m.calls);
      note_targets(m.own);
    }
    for (OutgoingMessage& m : s.outgoing) {
      note_placement(m.placement.get());
      note_targets(m.calls);
      can_fetch = can_fetch || m.fetched_from;
      if (!m.pieces || m.pieces->when != InPieces::tried) continue;
      can_go_in_pieces = true;
      are_many = are_many || m.pieces->are_many();
    }
  }
  if (can_fetch) trials_.ask(RunWay::fetched, /*worth_it=*/1, /*is_likely=*/false);
  // Whole messages also take more of the caches from what the program does in between, which is not timed.
  if (can_go_in_pieces) trials_.ask(RunWay::in_pieces, /*worth_it=*/1.15, /*is_likely=*/are_many);
  // Who reads what was written past the caches gets it from memory.
  const auto is_transposed = [](const ReadyCall* call) { return call->run_bytes() < jit::least_run_past_caches; };
  const bool go_past_at_first = transport::past_caches_from_environment().are_transpositions_likely &&
                                std::ranges::all_of(long_targets_, is_transposed);
  if (!long_targets_.empty()) trials_.ask(RunWay::through_caches, /*worth_it=*/1.05, /*is_likely=*/!go_past_at_first);
  if (can_place) trials_.ask(RunWay::in_place, /*worth_it=*/1, /*is_likely=*/are_blocks_long);
}

/// How the run that begins goes.
void Runner::begin_trials() {
  program_.placed_ways.take(
      [this](int rank, bool goes_in_place) { trials_.note_came(RunWay::in_place, rank, goes_in_place); });
  trials_.begin(run_, Clock::now(), may_wait_);
  const bool goes_in_place = trials_.goes(RunWay::in_place);
  if (trials_.asks(RunWay::in_place)) program_.placed_ways.tell(goes_in_place);
  if (goes_in_place && !(are_places_told_ && are_moving_places_told_)) tell_places();
  if (const bool go_past = !trials_.goes(RunWay::through_caches); go_past != do_targets_go_past_caches_) {
    for (ReadyCall* call : long_targets_) call->go_past_caches(go_past);
    do_targets_go_past_caches_ = go_past;
  }
}

/// Of what the sender tries, as far as one has seen.
void Runner::note_way(IncomingMessage& m, Way way) {
  const auto from = static_cast<int>(m.world_rank);
  m.was_fetched = m.was_fetched || way == Way::fetched;
  if (m.was_fetched) trials_.note_came(RunWay::fetched, from, way == Way::fetched);
  if (m.pieces->are_tried()) trials_.note_came(RunWay::in_pieces, from, way == Way::in_pieces);
}

}  // namespace kplan
