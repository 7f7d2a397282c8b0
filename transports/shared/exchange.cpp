// How it works: a rank that has begun exchange n + 1 has got what every other one sent in n, and so all have begun n
// and handed back what they had of n - 1: two slots of a pipe always do for letters that fit. Only where receivers know
// their sources can letters wait as copies, which are sent even if the object is destroyed meanwhile.
#include "transports/shared/exchange.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/letter.hpp"
#include "transports/shared/letter_pipe.hpp"

namespace kplan::transport {
namespace {

/// The copies for one rank that wait when an exchange is destroyed.
class WaitingCopies final : public Leftover {
 public:
  explicit WaitingCopies(LetterSender sender) : sender_(std::move(sender)) {}
  bool send() override { return sender_.send_waiting(pool_); }

 private:
  LetterSender sender_;
  LetterPool pool_;
};

class PipesExchange final : public SharedExchange, private InFlight {
 public:
  PipesExchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight);
  ~PipesExchange() override;

  std::byte* room(int to, std::size_t bytes) override;
  std::size_t least_body_bytes() const override { return piece_bytes_; }
  void begin(std::span<const OutgoingLetter> letters) override;
  void begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) override;
  bool is_complete() override;
  bool letters_have_come() override;
  void place_body(int from, std::span<const std::span<std::byte>> regions) override;
  [[gnu::hot]] std::span<const ReceivedLetter> received() const override { return received_.letters; }
  std::vector<int> waits_for() const override;
  bool forget() noexcept override;

 private:
  void start(std::span<const OutgoingLetter> letters);
  /// `may_be_placed`: bodies without a place wait for one.
  void move(bool may_be_placed);
  void move_on() override {
    if (!std::exchange(was_asked_, false)) move(/*may_be_placed=*/false);
  }

  int rank_;
  std::size_t piece_bytes_;
  std::shared_ptr<InFlightList> in_flight_;
  std::vector<LetterSender> senders_;      ///< by rank
  std::vector<LetterReceiver> receivers_;  ///< by rank
  std::vector<OutgoingLetter> letters_;    ///< by receiver
  ReceivedLetters received_;
  LetterPool pool_;
  bool is_complete_ = true, is_listed_ = false, knows_sources_ = false;
  bool was_asked_ = false;  ///< since it was last moved on
};

PipesExchange::PipesExchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight)
    : rank_(rank), piece_bytes_(pipes.ways.piece_bytes), in_flight_(std::move(in_flight)) {
  for (std::size_t r = 0; r < pipes.outgoing.size(); ++r) {
    senders_.emplace_back(std::move(pipes.outgoing[r]), std::move(pipes.distances[r]), pipes.ways);
    receivers_.emplace_back(static_cast<int>(r), std::move(pipes.incoming[r]), pipes.ways);
  }
}

PipesExchange::~PipesExchange() {
  in_flight_->remove(*this);
  for (LetterSender& s : senders_)
    if (s.has_waiting()) in_flight_->adopt(std::make_unique<WaitingCopies>(std::move(s)));
}

[[gnu::hot]] std::byte* PipesExchange::room(int to, std::size_t bytes) {
  return to == rank_ ? nullptr : senders_[static_cast<std::size_t>(to)].room(bytes);
}

[[gnu::hot]] void PipesExchange::begin(std::span<const OutgoingLetter> letters) {
  knows_sources_ = false;
  for (std::size_t r = 0; r < receivers_.size(); ++r) receivers_[r].begin(static_cast<int>(r) != rank_);
  start(letters);
}

[[gnu::hot]] void PipesExchange::begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) {
  knows_sources_ = true;
  for (LetterReceiver& r : receivers_) r.begin(/*sends=*/false);
  for (const int r : sources) receivers_[static_cast<std::size_t>(r)].begin(r != rank_);
  start(letters);
}

[[gnu::hot]] void PipesExchange::start(std::span<const OutgoingLetter> letters) {
  assert(is_complete_);
  received_.clear(pool_);
  letters_.assign(letters.begin(), letters.end());
  const auto is_before = [](const OutgoingLetter& a, const OutgoingLetter& b) { return a.to < b.to; };
  if (!std::is_sorted(letters_.begin(), letters_.end(), is_before))
    std::stable_sort(letters_.begin(), letters_.end(), is_before);
  for (auto [r, begin] = std::pair(0, letters_.begin()); r < static_cast<int>(senders_.size()); ++r) {
    const auto end = std::find_if(begin, letters_.end(), [r](const OutgoingLetter& letter) { return letter.to != r; });
    if (r != rank_) {
      LetterSender& sender = senders_[static_cast<std::size_t>(r)];
      sender.begin({begin, end}, knows_sources_);
      sender.push(pool_);
    } else {
      for (; begin != end; ++begin) received_.keep(pool_.copy(begin->bytes, rank_));
    }
    begin = end;
  }
  is_complete_ = false;
  if (!std::exchange(is_listed_, true)) in_flight_->add(*this);
}

bool PipesExchange::forget() noexcept {
  if (!is_complete_) return false;
  for (LetterReceiver& r : receivers_) r.give_back();
  received_.clear(pool_);
  pool_.clear();
  return true;
}

[[gnu::hot]] void PipesExchange::move(bool may_be_placed) {
  bool is_at_end = true, has_waiting = false;
  for (std::size_t r = 0; r < senders_.size(); ++r) {
    if (static_cast<int>(r) == rank_) continue;
    LetterSender& to = senders_[r];
    if (!to.is_done() || to.has_waiting()) to.push(pool_);
    LetterReceiver& from = receivers_[r];
    if (!from.has_ended()) from.pull(received_, pool_, may_be_placed);
    is_at_end = is_at_end && to.is_done() && from.has_ended() && !from.waits_for_place();
    has_waiting = has_waiting || to.has_waiting();
  }
  if (!is_complete_ && is_at_end) {
    order_by_sender(received_.letters);
    is_complete_ = true;
    if (!knows_sources_)
      for (LetterSender& s : senders_) s.note_begun();
  }
  if (is_complete_ && !has_waiting && std::exchange(is_listed_, false)) in_flight_->remove(*this);
}

[[gnu::hot]] bool PipesExchange::is_complete() {
  if (is_complete_) return true;
  was_asked_ = true;
  move(/*may_be_placed=*/true);
  return is_complete_;
}

[[gnu::hot]] bool PipesExchange::letters_have_come() {
  if (is_complete()) return true;
  if (!std::ranges::all_of(receivers_, &LetterReceiver::have_letters_come)) return false;
  order_by_sender(received_.letters);
  return true;
}

void PipesExchange::place_body(int from, std::span<const std::span<std::byte>> regions) {
  receivers_[static_cast<std::size_t>(from)].place_body(regions, pool_);
}

std::vector<int> PipesExchange::waits_for() const {
  std::vector<int> out;
  for (std::size_t r = 0; r < senders_.size() && !is_complete_; ++r)
    if (!senders_[r].is_done() || !receivers_[r].has_ended()) out.push_back(static_cast<int>(r));
  return out;
}

}  // namespace

std::unique_ptr<SharedExchange> shared_exchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight) {
  return std::make_unique<PipesExchange>(rank, std::move(pipes), std::move(in_flight));
}

}  // namespace kplan::transport
