// How it works: begin copies each letter, pushes the copies to their receivers' inboxes, and only then counts its rank
// as one that has posted this exchange; a receiver that reads the full count finds every letter in its inbox. The copy
// is the only one: the receiver hands out the very memory, and gives it back to the sender's pool when it begins its
// next exchange.
//
// No rank can post exchange n + 1 before all have posted n, so the letters in an inbox are of the exchange under way or
// of the next one: those wait in early_. Letters to receivers that know their sources are not counted at all, and a
// sender may be any number of exchanges ahead with them: they wait in a queue for each sender, and each such exchange
// takes one from each of its sources.
#include "transports/local/sparse_exchange.hpp"

#include <algorithm>
#include <cassert>

#include "transports/codes.hpp"

namespace kplan::transport::local_backend {
namespace {

class LocalExchange final : public SparseExchange {
 public:
  LocalExchange(std::shared_ptr<Board> board, int rank)
      : board_(std::move(board)), rank_(rank), number_(board_->first_number - 1), expected_(board_->places.size()) {}

  void begin(std::span<const OutgoingLetter> letters) override;
  void begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) override;
  bool is_complete() override;
  std::span<const ReceivedLetter> received() const override { return received_; }
  std::vector<int> waits_for() const override;

 private:
  Board::Place& place(int rank) const { return board_->places[static_cast<std::size_t>(rank)]; }
  void enter();
  void clear();
  void post(std::span<const OutgoingLetter> letters, bool is_expected, std::uint64_t number);
  void accept(LetterPtr letter);
  void empty_inbox();
  void take_expected();

  std::shared_ptr<Board> board_;
  int rank_;
  bool is_complete_ = true;
  bool has_failed_ = false;
  bool knows_sources_ = false;    // in the exchange under way
  std::uint64_t number_;          // of the last exchange begun in which it does not
  std::vector<int> outstanding_;  // sources whose letter has not come
  std::vector<ReceivedLetter> received_;
  LetterList accepted_;               // what received_ shows
  LetterList early_;                  // of the exchange after number_
  std::vector<LetterList> expected_;  // not yet accepted, by sender
  LetterPool pool_;
};

void LocalExchange::begin(std::span<const OutgoingLetter> letters) {
  enter();
  clear();
  post(letters, false, number_ + 1);
  ++number_;
  knows_sources_ = false;
  is_complete_ = false;
  place(rank_).posted.store(number_ + 1, std::memory_order_relaxed);
  board_->posted_in_all.fetch_add(1, std::memory_order_acq_rel);
  while (LetterPtr letter = early_.pop()) accept(std::move(letter));
  has_failed_ = false;
}

void LocalExchange::begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) {
  enter();
  clear();
  outstanding_.assign(sources.begin(), sources.end());
  post(letters, true, 0);
  knows_sources_ = true;
  is_complete_ = false;
  take_expected();
  has_failed_ = false;
}

/// A call that does not reach its end, for want of memory, may have lost a letter: none may follow it.
void LocalExchange::enter() {
  if (has_failed_)
    throw TransportError(codes::unusable, "a sparse exchange after one of its calls failed; make a new one");
  has_failed_ = true;
}

/// Gives back what came in the exchange before.
void LocalExchange::clear() {
  assert(is_complete_);
  received_.clear();
  while (LetterPtr letter = accepted_.pop()) {
    LetterStack& returned = place(letter->from).returned;
    returned.push(std::move(letter));
  }
}

void LocalExchange::post(std::span<const OutgoingLetter> letters, bool is_expected, std::uint64_t number) {
  LetterList returned = place(rank_).returned.take_all();
  while (LetterPtr letter = returned.pop()) pool_.give(std::move(letter));
  LetterList copies;
  for (const OutgoingLetter& outgoing : letters) {
    assert(outgoing.to >= 0 && static_cast<std::size_t>(outgoing.to) < board_->places.size());
    LetterPtr letter = pool_.copy(outgoing.bytes, rank_);
    letter->is_expected = is_expected;
    letter->number = number;
    copies.push(std::move(letter));
  }
  for (const OutgoingLetter& outgoing : letters) place(outgoing.to).inbox.push(copies.pop());
}

void LocalExchange::accept(LetterPtr letter) {
  received_.push_back(letter->view());
  accepted_.push(std::move(letter));
}

bool LocalExchange::is_complete() {
  if (is_complete_) return true;
  enter();
  // The count first: what it counts is in the inbox when that is emptied.
  const std::uint64_t exchanges = number_ + 1 - board_->first_number;
  const bool have_all_posted =
      board_->posted_in_all.load(std::memory_order_acquire) >= exchanges * board_->places.size();
  empty_inbox();
  is_complete_ = knows_sources_ ? outstanding_.empty() : have_all_posted;
  if (is_complete_) order_by_sender(received_);
  has_failed_ = false;
  return is_complete_;
}

void LocalExchange::empty_inbox() {
  LetterList came = place(rank_).inbox.take_all();
  if (came.is_empty()) return;
  while (LetterPtr letter = came.pop()) {
    if (letter->is_expected) {
      LetterList& from = expected_[static_cast<std::size_t>(letter->from)];
      from.push(std::move(letter));
    } else if (letter->number == number_) {
      accept(std::move(letter));
    } else {
      assert(letter->number == number_ + 1);
      early_.push(std::move(letter));
    }
  }
  if (knows_sources_) take_expected();
}

void LocalExchange::take_expected() {
  std::erase_if(outstanding_, [this](int source) {
    LetterPtr letter = expected_[static_cast<std::size_t>(source)].pop();
    if (!letter) return false;
    accept(std::move(letter));
    return true;
  });
}

std::vector<int> LocalExchange::waits_for() const {
  if (is_complete_) return {};
  if (knows_sources_) return outstanding_;
  std::vector<int> ranks;
  for (int rank = 0; static_cast<std::size_t>(rank) < board_->places.size(); ++rank) {
    if (place(rank).posted.load(std::memory_order_relaxed) == number_) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

std::unique_ptr<SparseExchange> sparse_exchange(std::shared_ptr<Board> board, int rank) {
  return std::make_unique<LocalExchange>(std::move(board), rank);
}

}  // namespace kplan::transport::local_backend
