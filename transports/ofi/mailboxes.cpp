// How it works: an object is a number that all ranks count alike. What comes for one that this rank has not opened yet
// waits in its box; what comes for one that it has closed is let in and thrown away, since its sender counts on that.
#include "transports/ofi/mailboxes.hpp"

#include <utility>

namespace kplan::transport::ofi_backend {

void Mailbox::put(LetterPtr letter, LetterKind kind) {
  if (kind == LetterKind::expected) return expected_[static_cast<std::size_t>(letter->from)].push(std::move(letter));
  (kind == LetterKind::even ? even_ : odd_).push(std::move(letter));
}

LetterPtr Mailbox::take(int source, LetterKind kind) {
  if (kind == LetterKind::expected) return expected_[static_cast<std::size_t>(source)].pop();
  return (kind == LetterKind::even ? even_ : odd_).pop();
}

LetterPtr Mailbox::take_any() {
  for (LetterList* list : {&even_, &odd_}) {
    if (LetterPtr letter = list->pop()) return letter;
  }
  for (LetterList& list : expected_) {
    if (LetterPtr letter = list.pop()) return letter;
  }
  return nullptr;
}

void Mailbox::count_untaken(int rank, int change) {
  if (untaken_.empty()) untaken_.resize(expected_.size());
  untaken_[static_cast<std::size_t>(rank)] += change;
  all_untaken_ += change;
}

std::uint32_t Mailboxes::open() {
  std::unique_ptr<Mailbox>& box = boxes_[opened_];
  if (!box) box = std::make_unique<Mailbox>(ranks_);
  return opened_++;
}

void Mailboxes::close(std::uint32_t number) {
  while (LetterPtr letter = at(number).take_any()) discard(std::move(letter));
  boxes_.erase(number);
}

void Mailboxes::discard(LetterPtr letter) {
  if (!letter->is_arriving) return pool_.give(std::move(letter));
  void* const whose = letter.get();
  orphans_.emplace(whose, std::move(letter));
}

/// Null for an object that is closed.
Mailbox* Mailboxes::find(std::uint32_t number) {
  const auto found = boxes_.find(number);
  if (found != boxes_.end()) return found->second.get();
  // Numbers come round after four billion; half of them lie ahead.
  if (number - opened_ >= std::uint32_t{1} << 31) return nullptr;
  return boxes_.emplace(number, std::make_unique<Mailbox>(ranks_)).first->second.get();
}

Recipient::Place Mailboxes::take(const Note& note) {
  Mailbox* const box = find(note.number);
  if (note.word == Word::taken && box != nullptr) box->count_untaken(note.from, -1);
  if (note.word == Word::barrier && box != nullptr) ++box->tokens.at(note.value);
  if (note.word != Word::letter) return {};
  LetterPtr letter = pool_.take(note.bytes);
  letter->from = note.from;
  letter->is_arriving = true;
  const Recipient::Place place{letter->data(), letter.get()};
  if (box == nullptr) discard(std::move(letter));
  else box->put(std::move(letter), static_cast<LetterKind>(note.value));
  return place;
}

void Mailboxes::filled(void* letter) {
  static_cast<Letter*>(letter)->is_arriving = false;
  const auto found = orphans_.find(letter);
  if (found == orphans_.end()) return;
  pool_.give(std::move(found->second));
  orphans_.erase(found);
}

}  // namespace kplan::transport::ofi_backend
