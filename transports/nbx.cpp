// How it works: NBX (Hoefler, Siebert, Lumsdaine, Scalable Communication Protocols for Dynamic Sparse Data Exchange,
// PPoPP 2010, section 3.4; Kanor, figure 3). A rank whose letters have all been matched by their receivers enters a
// barrier that does not block; when that is passed, every letter of every rank has been matched, and those to this rank
// are only to be received to their end.
//
// The parity of an exchange's number keeps exchanges apart. A rank begins exchange n + 1 after it has passed barrier n,
// for which every rank had to enter barrier n, with its letters of n matched. So while any rank is in n + 1, no letter
// of n is on its way any more, all ranks are in n or in n + 1, and none is in n + 2, whose parity is that of n: whoever
// looks for letters of one parity finds those of its own exchange only.
//
// Where receivers know their sources, a rank takes from each of its sources one letter of a third kind, the first that
// it has not taken yet, however many there are.
//
// Whether there are bodies for it, a rank learns from their letters. So an exchange that may have some does not end
// while nobody asks whether it is complete: what bodies come meanwhile is kept, and copied to its place when it has
// one.
#include "transports/nbx.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/codes.hpp"

namespace kplan::transport {

Nbx::Nbx(std::unique_ptr<Mail> mail, std::shared_ptr<InFlightList> in_flight, std::uint64_t first)
    : mail_(std::move(mail)), in_flight_(std::move(in_flight)), number_(first - 1) {}

[[gnu::hot]] LetterKind Nbx::kind() const {
  if (knows_sources_) return LetterKind::expected;
  return number_ % 2 == 0 ? LetterKind::even : LetterKind::odd;
}

/// A call that does not reach its end may have lost a letter: none may follow it.
[[gnu::hot]] void Nbx::enter() {
  if (has_failed_)
    throw TransportError(codes::unusable, "a sparse exchange after one of its calls failed; make a new one");
  mail_->require_usable();
  has_failed_ = true;
}

[[gnu::hot]] void Nbx::begin(std::span<const OutgoingLetter> letters) {
  enter();
  ++number_;
  knows_sources_ = false;
  start(letters);
  has_failed_ = false;
}

[[gnu::hot]] void Nbx::begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) {
  enter();
  knows_sources_ = true;
  outstanding_.assign(sources.begin(), sources.end());
  start(letters);
  has_failed_ = false;
}

[[gnu::hot]] void Nbx::start(std::span<const OutgoingLetter> letters) {
  assert(is_complete_);
  mail_->clear();
  is_in_barrier_ = false;
  is_complete_ = have_letters_come_ = false;
  in_flight_->add(*this);
  if (knows_sources_)
    for (const int source : outstanding_)
      if (source != mail_->rank()) mail_->expect(source);
  for (const OutgoingLetter& letter : letters) {
    if (letter.to != mail_->rank()) {
      mail_->send(letter, kind());
    } else {
      mail_->keep(letter.bytes);
      std::erase(outstanding_, mail_->rank());
    }
  }
}

[[gnu::hot]] bool Nbx::is_complete() {
  if (is_complete_) return true;
  was_asked_ = true;
  move(/*may_end=*/true);
  return is_complete_;
}

[[gnu::hot]] bool Nbx::letters_have_come() {
  if (mail_->least_body_bytes() == 0) return is_complete();
  if (have_letters_come_) return true;
  was_asked_ = true;
  move(/*may_end=*/false);
  return have_letters_come_;
}

void Nbx::place_body(int from, std::span<const std::span<std::byte>> regions) {
  enter();
  mail_->place_body(from, regions);
  has_failed_ = false;
}

[[gnu::hot]] void Nbx::move_on() {
  if (std::exchange(was_asked_, false) || has_failed_) return;
  const bool have_bodies = mail_->least_body_bytes() > 0;
  move(/*may_end=*/!have_bodies);
  if (!have_bodies || !have_letters_come_) return;
  enter();
  mail_->take_early_bodies();
  has_failed_ = false;
}

[[gnu::hot]] void Nbx::move(bool may_end) {
  enter();
  if (!have_letters_come_) {
    match_letters();
    have_letters_come_ = are_letters_here();
    if (have_letters_come_) mail_->order();
  }
  const bool is_at_end = mail_->are_taken() && have_letters_come_ && mail_->are_bodies_done();
  if (may_end && is_at_end) {
    mail_->end();
    in_flight_->remove(*this);
    is_complete_ = true;
  }
  has_failed_ = false;
}

[[gnu::hot]] void Nbx::match_letters() {
  if (knows_sources_) {
    std::erase_if(outstanding_, [this](int source) { return mail_->match(source, kind()); });
  } else {
    while (mail_->match(any_rank, kind())) {
    }
  }
}

[[gnu::hot]] bool Nbx::are_letters_here() {
  const bool have_come = mail_->have_come();
  if (knows_sources_) return outstanding_.empty() && have_come;
  if (!mail_->are_taken()) return false;
  if (!is_in_barrier_) is_in_barrier_ = mail_->try_enter_barrier();
  return is_in_barrier_ && mail_->is_barrier_passed() && have_come;
}

std::vector<int> Nbx::waits_for() const {
  if (is_complete_) return {};
  std::vector<int> ranks;
  mail_->name_awaited(ranks);
  if (knows_sources_) ranks.insert(ranks.end(), outstanding_.begin(), outstanding_.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace kplan::transport
