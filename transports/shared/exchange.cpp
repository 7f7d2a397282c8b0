// How it works: a letter that fits in a chunk and is the last from its sender is read where it lies, until the next
// begin; others are put together in memory of their own. A rank that has begun exchange n + 1 has got what every other
// one sent in n, and so all have begun n and handed back what they had of n - 1: two slots always do for letters that
// fit. Only where receivers know their sources can a sender find both in use: then the letter waits as a copy, which is
// sent even if the object is destroyed meanwhile.
//
// A body follows its letter in pieces. While they have no place they stay in the pipe, but where this rank waits for
// something else, which may need what the sender does next: then they are put together in memory, too.
#include "transports/shared/exchange.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "transports/letter.hpp"

namespace kplan::transport {
namespace {

/// A body, on its way from or to regions.
template <class Byte>
class Body {
 public:
  Body() = default;
  explicit Body(std::span<const std::span<Byte>> regions) : regions_(regions) {}

  /// Calls f(memory, packed, bytes) for each part of the next bytes, `packed` of one behind that of the other.
  template <class F>
  void go(std::byte* packed, std::size_t bytes, const F& f) {
    while (bytes > 0 && !regions_.empty()) {
      const std::span<Byte> left = regions_.front().subspan(at_);
      const std::size_t part = std::min(bytes, left.size());
      if (part > 0) f(left.data(), packed, part);
      packed += part;
      bytes -= part;
      at_ += part;
      if (part == left.size()) regions_ = regions_.subspan(1), at_ = 0;
    }
  }

 private:
  std::span<const std::span<Byte>> regions_;  ///< what is left of them
  std::size_t at_ = 0;                        ///< bytes of the first that are done
};

struct Outgoing {
  Outgoing(PipeSender p, std::shared_ptr<Distance> d) : pipe(std::move(p)), distance(std::move(d)) {}
  PipeSender pipe;
  std::shared_ptr<Distance> distance;
  LetterList waiting;                             ///< copies that go before all others
  std::size_t next = 0, end = 0, sent_bytes = 0;  ///< letters of the exchange under way, and of the next one
  std::uint64_t put_before = 0;                   ///< chunks of earlier exchanges
  Body<const std::byte> body;                     ///< that is under way
  std::size_t body_bytes = 0, body_left = 0;      ///< of it, and of them to be sent
  bool is_done = true;
};

struct Incoming {
  explicit Incoming(PipeReceiver p) : pipe(std::move(p)) {}
  PipeReceiver pipe;
  LetterPtr letter;  ///< that is coming in chunks, or a body without a place
  std::size_t come_bytes = 0;
  Body<std::byte> body;  ///< where it goes
  bool has_body = false, is_placed = false;
  bool is_kept = false;  ///< the last chunk, where it lies
  bool has_ended = true;
};

/// Letters past the caches.
struct NonTemporal {
  std::size_t bytes;  ///< from so many on; 0: none

  /// To memory that the pipe has given for a chunk.
  bool applies(Outgoing& to, std::byte* memory, std::size_t chunk_bytes) const {
    return bytes > 0 && chunk_bytes >= bytes && chunk_bytes > PipeSender::most_short &&
           to.distance->is_far(to.pipe.is_worn() ? memory : nullptr, chunk_bytes);
  }
};

[[gnu::hot]] void put_in(Outgoing& to, std::byte* memory, const std::byte* from, std::size_t bytes,
                         NonTemporal non_temporal) {
  if (bytes == 0 || from == memory) return;
  if (non_temporal.applies(to, memory, bytes)) copy_to_slot(memory, from, bytes, Stores::non_temporal);
  else std::memcpy(memory, from, bytes);
}

/// Sends the copies that wait; whether all have gone.
bool send_waiting(Outgoing& o, NonTemporal non_temporal, LetterPool& pool) {
  while (LetterPtr letter = o.waiting.pop()) {
    std::byte* const memory = o.pipe.free(letter->bytes);
    if (!memory) {
      o.waiting.push_front(std::move(letter));
      return false;
    }
    put_in(o, memory, letter->data(), letter->bytes, non_temporal);
    o.pipe.put(letter->bytes, letter->bytes, Holds::letter, /*is_last=*/true);
    pool.give(std::move(letter));
  }
  return true;
}

/// The copies for one rank that wait when an exchange is destroyed.
class WaitingCopies final : public Leftover {
 public:
  WaitingCopies(Outgoing outgoing, NonTemporal non_temporal)
      : outgoing_(std::move(outgoing)), non_temporal_(non_temporal) {}
  bool send() override { return send_waiting(outgoing_, non_temporal_, pool_); }

 private:
  Outgoing outgoing_;
  NonTemporal non_temporal_;
  LetterPool pool_;
};

class SharedExchange final : public SparseExchange, private InFlight {
 public:
  SharedExchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight);
  ~SharedExchange() override;

  std::byte* room(int to, std::size_t bytes) override;
  std::size_t least_body_bytes() const override { return piece_bytes_; }
  void begin(std::span<const OutgoingLetter> letters) override;
  void begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) override;
  bool is_complete() override;
  bool letters_have_come() override;
  void place_body(int from, std::span<const std::span<std::byte>> regions) override;
  [[gnu::hot]] std::span<const ReceivedLetter> received() const override { return received_; }
  std::vector<int> waits_for() const override;

  /// Gives up what the last exchange brought, and memory for the next. False where it was not seen to be complete.
  bool forget() noexcept;

 private:
  void start(std::span<const OutgoingLetter> letters);
  void give_back_received();
  void keep_own(const OutgoingLetter& letter);
  void push(Outgoing& to);
  void begin_body(Outgoing& to, const OutgoingLetter& letter);
  bool push_body(Outgoing& to);
  void pull(int from, bool may_be_placed);
  bool take(int from, Chunk& chunk);
  bool take_body(int from, Chunk& chunk, bool may_be_placed);
  /// `may_be_placed`: bodies without a place wait for one.
  void move(bool may_be_placed);
  void move_on() override {
    if (!std::exchange(was_asked_, false)) move(/*may_be_placed=*/false);
  }
  Outgoing& outgoing(int rank) { return outgoing_[static_cast<std::size_t>(rank)]; }

  int rank_;
  std::size_t chunk_bytes_, piece_bytes_;
  NonTemporal non_temporal_;
  std::shared_ptr<InFlightList> in_flight_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::vector<OutgoingLetter> letters_;  ///< by receiver
  std::vector<ReceivedLetter> received_;
  LetterList kept_;  ///< letters of received_ that do not lie in a pipe
  LetterPool pool_;
  bool is_complete_ = true, is_listed_ = false, knows_sources_ = false;
  bool was_asked_ = false;  ///< since it was last moved on
};

SharedExchange::SharedExchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight)
    : rank_(rank),
      chunk_bytes_(pipes.chunk_bytes),
      piece_bytes_(pipes.piece_bytes),
      non_temporal_{pipes.non_temporal_bytes},
      in_flight_(std::move(in_flight)) {
  for (std::size_t r = 0; r < pipes.outgoing.size(); ++r)
    outgoing_.emplace_back(PipeSender(std::move(pipes.outgoing[r]), chunk_bytes_, pipes.share_cores),
                           std::move(pipes.distances[r]));
  for (PipeMemory& p : pipes.incoming) incoming_.emplace_back(PipeReceiver(std::move(p), chunk_bytes_));
}

SharedExchange::~SharedExchange() {
  in_flight_->remove(*this);
  for (Outgoing& o : outgoing_)
    if (!o.waiting.is_empty()) in_flight_->adopt(std::make_unique<WaitingCopies>(std::move(o), non_temporal_));
}

[[gnu::hot]] std::byte* SharedExchange::room(int to, std::size_t bytes) {
  if (to == rank_ || bytes > chunk_bytes_) return nullptr;
  Outgoing& o = outgoing(to);
  if (!o.waiting.is_empty()) return nullptr;
  std::byte* const memory = o.pipe.free(bytes);
  return memory && !non_temporal_.applies(o, memory, bytes) ? memory : nullptr;
}

[[gnu::hot]] void SharedExchange::begin(std::span<const OutgoingLetter> letters) {
  knows_sources_ = false;
  for (std::size_t r = 0; r < outgoing_.size(); ++r)
    incoming_[r].has_ended = outgoing_[r].is_done = r == static_cast<std::size_t>(rank_);
  start(letters);
}

[[gnu::hot]] void SharedExchange::begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) {
  knows_sources_ = true;
  for (std::size_t r = 0; r < outgoing_.size(); ++r) incoming_[r].has_ended = outgoing_[r].is_done = true;
  for (const int r : sources) incoming_[static_cast<std::size_t>(r)].has_ended = r == rank_;
  for (const OutgoingLetter& letter : letters) outgoing(letter.to).is_done = letter.to == rank_;
  start(letters);
}

[[gnu::hot]] void SharedExchange::start(std::span<const OutgoingLetter> letters) {
  assert(is_complete_);
  give_back_received();
  letters_.assign(letters.begin(), letters.end());
  const auto is_before = [](const OutgoingLetter& a, const OutgoingLetter& b) { return a.to < b.to; };
  if (!std::is_sorted(letters_.begin(), letters_.end(), is_before))
    std::stable_sort(letters_.begin(), letters_.end(), is_before);
  for (std::size_t next = 0, r = 0; r < outgoing_.size(); ++r) {
    Outgoing& o = outgoing_[r];
    o.next = next;
    o.put_before = o.pipe.put_count();
    while (next < letters_.size() && letters_[next].to == static_cast<int>(r)) ++next;
    o.end = next;
    o.sent_bytes = o.body_left = 0;
    incoming_[r].has_body = incoming_[r].is_placed = false;
    if (static_cast<int>(r) == rank_)
      for (std::size_t k = o.next; k < o.end; ++k) keep_own(letters_[k]);
    else push(o);
  }
  is_complete_ = false;
  if (!std::exchange(is_listed_, true)) in_flight_->add(*this);
}

[[gnu::hot]] void SharedExchange::give_back_received() {
  received_.clear();
  while (LetterPtr letter = kept_.pop()) pool_.give(std::move(letter));
  for (Incoming& i : incoming_)
    if (std::exchange(i.is_kept, false)) i.pipe.release();
}

bool SharedExchange::forget() noexcept {
  if (!is_complete_) return false;
  give_back_received();
  pool_.clear();
  return true;
}

void SharedExchange::keep_own(const OutgoingLetter& letter) {
  LetterPtr copy = pool_.take(letter.bytes.size());
  if (!letter.bytes.empty()) std::memcpy(copy->data(), letter.bytes.data(), letter.bytes.size());
  copy->from = rank_;
  received_.push_back(copy->view());
  kept_.push(std::move(copy));
}

/// Sends as much as there is room for.
[[gnu::hot]] void SharedExchange::push(Outgoing& o) {
  bool can_put = send_waiting(o, non_temporal_, pool_);
  while (!o.is_done) {
    if (o.body_left > 0) {
      if (!push_body(o)) return;
      continue;
    }
    const std::size_t count = o.next < o.end ? std::min(chunk_bytes_, letters_[o.next].bytes.size() - o.sent_bytes) : 0;
    std::byte* const memory = can_put ? o.pipe.free(count) : nullptr;
    if (!memory) {
      const OutgoingLetter& letter = letters_[o.next];
      const bool waits_as_copy =
          knows_sources_ && o.sent_bytes == 0 && letter.bytes.size() <= chunk_bytes_ && letter.body.empty();
      if (!waits_as_copy) return;
      const std::span<const std::byte> bytes = letter.bytes;
      LetterPtr copy = pool_.take(bytes.size());
      if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
      o.waiting.push(std::move(copy));
      can_put = false;
      o.is_done = ++o.next == o.end;
      continue;
    }
    Holds holds = Holds::nothing;
    std::size_t letter_bytes = 0;
    if (o.next < o.end) {
      const OutgoingLetter& letter = letters_[o.next];
      holds = letter.body.empty() ? Holds::letter : Holds::letter_with_body;
      letter_bytes = letter.bytes.size();
      put_in(o, memory, letter.bytes.data() + o.sent_bytes, count, non_temporal_);
      o.sent_bytes += count;
      if (o.sent_bytes == letter_bytes) {
        o.sent_bytes = 0;
        ++o.next;
        if (!letter.body.empty()) [[unlikely]]
          begin_body(o, letter);
      }
    }
    o.is_done = o.next == o.end && o.body_left == 0;
    o.pipe.put(count, letter_bytes, holds, o.is_done);
  }
}

void SharedExchange::begin_body(Outgoing& o, const OutgoingLetter& letter) {
  assert(o.next == o.end);
  o.body = Body(letter.body);
  o.body_bytes = 0;
  for (const std::span<const std::byte> region : letter.body) o.body_bytes += region.size();
  o.body_left = o.body_bytes;
}

/// Sends the next piece of a body; whether there was room for it.
bool SharedExchange::push_body(Outgoing& o) {
  const std::size_t count = std::min(piece_bytes_, o.body_left);
  std::byte* const memory = o.pipe.free(count);
  if (!memory) return false;
  const Stores stores = non_temporal_.applies(o, memory, count) ? Stores::non_temporal : Stores::cached;
  o.body.go(memory, count,
            [&](const std::byte* from, std::byte* to, std::size_t bytes) { copy_to_slot(to, from, bytes, stores); });
  o.body_left -= count;
  o.is_done = o.body_left == 0;
  o.pipe.put(count, o.body_bytes, Holds::body, o.is_done);
  return true;
}

[[gnu::hot]] void SharedExchange::pull(int from, bool may_be_placed) {
  Incoming& i = incoming_[static_cast<std::size_t>(from)];
  while (!i.has_ended) {
    Chunk* const chunk = i.pipe.arrived();
    if (!chunk) return;
    if (chunk->holds == Holds::body) {
      if (!take_body(from, *chunk, may_be_placed)) return;
    } else {
      i.is_kept = take(from, *chunk);
    }
    i.has_ended = chunk->is_last != 0;
    i.pipe.take();
    if (!i.is_kept) i.pipe.release();
  }
}

/// Takes what a chunk holds; whether it must stay where it is.
[[gnu::hot]] bool SharedExchange::take(int from, Chunk& chunk) {
  if (chunk.holds == Holds::nothing) return false;
  Incoming& i = incoming_[static_cast<std::size_t>(from)];
  if (chunk.is_last != 0 && chunk.bytes == chunk.whole_bytes) {
    received_.push_back({from, {chunk.data(), chunk.bytes}});
    return true;
  }
  if (!i.letter) {
    i.letter = pool_.take(chunk.whole_bytes);
    i.letter->from = from;
    i.come_bytes = 0;
  }
  std::memcpy(i.letter->data() + i.come_bytes, chunk.data(), chunk.bytes);
  i.come_bytes += chunk.bytes;
  if (i.come_bytes < i.letter->bytes) return false;
  i.has_body = chunk.holds == Holds::letter_with_body;
  received_.push_back(i.letter->view());
  kept_.push(std::move(i.letter));
  return false;
}

void put_in_place(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

/// Takes a piece of a body; false where it waits for a place.
bool SharedExchange::take_body(int from, Chunk& chunk, bool may_be_placed) {
  Incoming& i = incoming_[static_cast<std::size_t>(from)];
  if (i.is_placed) {
    i.body.go(chunk.data(), chunk.bytes, put_in_place);
    return true;
  }
  if (may_be_placed) return false;
  if (!i.letter) {
    i.letter = pool_.take(chunk.whole_bytes);
    i.come_bytes = 0;
  }
  std::memcpy(i.letter->data() + i.come_bytes, chunk.data(), chunk.bytes);
  i.come_bytes += chunk.bytes;
  return true;
}

[[gnu::hot]] bool SharedExchange::letters_have_come() {
  if (is_complete()) return true;
  if (!std::ranges::all_of(incoming_, [](const Incoming& i) { return i.has_ended || i.has_body; })) return false;
  order_by_sender(received_);
  return true;
}

void SharedExchange::place_body(int from, std::span<const std::span<std::byte>> regions) {
  Incoming& i = incoming_[static_cast<std::size_t>(from)];
  assert(i.has_body && !i.is_placed);
  i.is_placed = true;
  i.body = Body(regions);
  if (!i.letter) return;
  i.body.go(i.letter->data(), i.come_bytes, put_in_place);
  pool_.give(std::move(i.letter));
}

[[gnu::hot]] void SharedExchange::move(bool may_be_placed) {
  bool is_at_end = true, has_waiting = false;
  for (std::size_t r = 0; r < outgoing_.size(); ++r) {
    if (static_cast<int>(r) == rank_) continue;
    Outgoing& o = outgoing_[r];
    if (!o.is_done || !o.waiting.is_empty()) push(o);
    Incoming& i = incoming_[r];
    if (!i.has_ended) pull(static_cast<int>(r), may_be_placed);
    is_at_end = is_at_end && o.is_done && i.has_ended && (!i.has_body || i.is_placed);
    has_waiting = has_waiting || !o.waiting.is_empty();
  }
  if (!is_complete_ && is_at_end) {
    order_by_sender(received_);
    is_complete_ = true;
    if (!knows_sources_)  // all have begun this exchange, and handed back what they had of those before
      for (Outgoing& o : outgoing_) o.pipe.note_released(o.put_before);
  }
  if (is_complete_ && !has_waiting && std::exchange(is_listed_, false)) in_flight_->remove(*this);
}

[[gnu::hot]] bool SharedExchange::is_complete() {
  if (is_complete_) return true;
  was_asked_ = true;
  move(/*may_be_placed=*/true);
  return is_complete_;
}

std::vector<int> SharedExchange::waits_for() const {
  std::vector<int> out;
  for (std::size_t r = 0; r < outgoing_.size() && !is_complete_; ++r)
    if (!outgoing_[r].is_done || !incoming_[r].has_ended) out.push_back(static_cast<int>(r));
  return out;
}

}  // namespace

std::unique_ptr<SparseExchange> shared_exchange(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight) {
  return std::make_unique<SharedExchange>(rank, std::move(pipes), std::move(in_flight));
}

struct LentPipes::State {
  std::unique_ptr<SharedExchange> exchange;  ///< null when an object was destroyed before it was complete
  bool is_lent = false;
  bool may_hold_letters = false;  ///< whose receivers close their objects without having begun the exchange
};

class LentPipes::Borrower final : public SparseExchange {
 public:
  explicit Borrower(std::shared_ptr<State> state) : state_(std::move(state)), exchange_(*state_->exchange) {
    state_->is_lent = true;
  }
  ~Borrower() override {
    state_->is_lent = false;
    if (!exchange_.forget()) state_->exchange.reset();
  }

  std::byte* room(int to, std::size_t bytes) override { return exchange_.room(to, bytes); }
  std::size_t least_body_bytes() const override { return exchange_.least_body_bytes(); }
  void begin(std::span<const OutgoingLetter> letters) override { exchange_.begin(letters); }
  void begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) override {
    state_->may_hold_letters = true;
    exchange_.begin(letters, sources);
  }
  bool is_complete() override { return exchange_.is_complete(); }
  bool letters_have_come() override { return exchange_.letters_have_come(); }
  void place_body(int from, std::span<const std::span<std::byte>> regions) override {
    exchange_.place_body(from, regions);
  }
  std::span<const ReceivedLetter> received() const override { return exchange_.received(); }
  std::vector<int> waits_for() const override { return exchange_.waits_for(); }

 private:
  std::shared_ptr<State> state_;
  SharedExchange& exchange_;
};

LentPipes::LentPipes(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight)
    : state_(std::make_shared<State>()) {
  state_->exchange = std::make_unique<SharedExchange>(rank, std::move(pipes), std::move(in_flight));
}
LentPipes::~LentPipes() = default;

bool LentPipes::are_free() const { return state_->exchange && !state_->is_lent && !state_->may_hold_letters; }

std::unique_ptr<SparseExchange> LentPipes::lend() { return std::make_unique<Borrower>(state_); }

}  // namespace kplan::transport
