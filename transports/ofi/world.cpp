// How it works: providers make progress only when they are asked, so every wait does. What comes is handed to channels
// by slot or by link, and to sparse exchanges by mailbox.
//
// A connection that closes may take with it what is still on its way. So a rank that ends first waits until the others
// have taken its messages: channels say so when they settle, and a farewell at the end of the notes is answered.
#include "transports/ofi/world.hpp"

#include <algorithm>

#include "transports/codes.hpp"
#include "transports/matching.hpp"
#include "transports/not_come.hpp"
#include "transports/ofi/trial.hpp"
#include "transports/pause.hpp"

namespace kplan::transport::ofi_backend {
namespace {

using namespace std::chrono_literals;

constexpr auto time_of_leaving = 10s, most_time_of_leaving = 60s;  ///< since something moved; in all
constexpr auto time_to_hear_of_death = 500ms;

}  // namespace

std::vector<std::string> World::allgather(std::string_view mine, Clock::time_point deadline) {
  return member_->allgather(mine, deadline, [this] { progress(); });
}

void World::warm(const std::vector<int>& peers, Clock::time_point deadline) {
  const Clock::time_point begin = Clock::now();
  for (const int peer : peers) {
    if (!post_->has_sent_to(peer)) post_->send(peer, Word::hello, 0);
  }
  std::vector<int> missing = peers;
  for (unsigned idle = 0;; ++idle) {
    std::erase_if(missing, [this](int peer) { return was_greeted_by_[static_cast<std::size_t>(peer)]; });
    if (missing.empty()) return;
    progress();
    for (const int peer : missing) {
      if (idle % 64 == 63 && is_dead(peer))
        throw TransportError(codes::lost, "rank " + std::to_string(rank()) + " connects to rank " +
                                              std::to_string(peer) + ", which has ended");
    }
    if (Clock::now() >= deadline)
      throw TransportError(codes::not_come,
                           "rank " + std::to_string(rank()) + " waited " + in_seconds(Clock::now() - begin) +
                               " s for " + endpoint_->provider().name() + " to connect it to " + rank_list(missing) +
                               "; where hosts have several networks, say which one (FI_TCP_IFACE for tcp)");
    pause_thread(idle, true);
  }
}

void World::progress() {
  (void)endpoint_->poll();
  mailboxes_.in_flight()->move_on();
  if (!orphans_.empty()) std::erase_if(orphans_, [](const Orphan& orphan) { return orphan.parcel->is_sent(); });
  if (!endpoint_->failures().empty()) [[unlikely]]
    throw_if_failed();
}

/// A failure with a rank that has ended is told of by whoever waits for that rank.
void World::throw_if_failed() {
  const bool is_any_dead = dead().has_value();
  for (const auto& [peer, failure] : endpoint_->failures()) {
    if (Clock::now() - failure.when < time_to_hear_of_death || (peer == anybody ? is_any_dead : is_dead(peer)))
      continue;
    throw TransportError(codes::ofi_failed,
                         "rank " + std::to_string(rank()) + ": " + endpoint_->provider().name() + " failed" +
                             (peer == anybody ? "" : " with rank " + std::to_string(peer)) + ": " + failure.text);
  }
}

Recipient::Place World::take(const Note& note) {
  was_greeted_by_[static_cast<std::size_t>(note.from)] = true;
  switch (note.word) {
    case Word::hello: break;
    case Word::farewell:
      post_->send(note.from, Word::heard, 0);
      is_done_with_[static_cast<std::size_t>(note.from)] = true;
      break;
    case Word::heard: is_done_with_[static_cast<std::size_t>(note.from)] = true; break;
    case Word::put: {
      const Links::Slot slot = links_.slot(note.number);
      return {slot.owner->slot_memory(slot.index), nullptr};
    }
    case Word::credit:
    case Word::closed:
    case Word::settled:
      links_.at(note.number).heard(note);
      links_.review(note.number);
      break;
    case Word::letter:
    case Word::taken:
    case Word::barrier: return mailboxes_.take(note);
  }
  return {};
}

void World::filled(const Note& note, void* whose) {
  if (note.word == Word::put) {
    const Links::Slot slot = links_.slot(note.number);
    slot.owner->filled(slot.index);
  }
  if (note.word == Word::letter) mailboxes_.filled(whose);
}

void World::notified(std::uint32_t what) {
  if (what == no_slot) return;
  const Links::Slot slot = links_.slot(what);
  slot.owner->written(slot.index);
}

void World::leave() {
  const auto after = [](Clock::duration time) {
    return Clock::now() + std::min<Clock::duration>(time, timeout_from_environment());
  };
  const Clock::time_point end = after(most_time_of_leaving);
  Clock::time_point deadline = after(time_of_leaving);
  const auto wait_until = [&](const auto& is_so) {
    for (unsigned idle = 0; !is_so() && Clock::now() < std::min(deadline, end); ++idle) {
      if (endpoint_->poll()) {  // others that take what is there may take long
        deadline = after(time_of_leaving);
        idle = 0;
      } else {
        pause_thread(idle, true);
      }
    }
  };
  wait_until([&] {
    std::vector<int> unsettled = links_.unsettled();
    std::erase_if(unsettled,
                  [this](int each) { return is_done_with_[static_cast<std::size_t>(each)] || is_out_of_reach(each); });
    return unsettled.empty();
  });
  std::vector<int> awaited;
  for (int each = 0; each < size(); ++each) {
    if (each == rank() || !post_->has_sent_to(each) || is_out_of_reach(each)) continue;
    post_->send(each, Word::farewell, 0);
    awaited.push_back(each);
  }
  wait_until([&] {
    std::erase_if(awaited,
                  [this](int each) { return is_done_with_[static_cast<std::size_t>(each)] || is_out_of_reach(each); });
    bool is_idle = awaited.empty();
    for (int each = 0; each < size() && is_idle; ++each) is_idle = post_->is_idle_with(each) || is_out_of_reach(each);
    return is_idle;
  });
}

World::~World() {
  try {
    if (size() > 1) leave();
  } catch (const std::exception&) {  // and nobody is there to be told
  }
  post_.reset();  // and with it the endpoint, before any memory goes
}

}  // namespace kplan::transport::ofi_backend
