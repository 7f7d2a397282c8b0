#pragma once
// The protocol of sparse exchanges between processes, NBX, apart from how a backend carries letters: that is its Mail.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kplan/transport.hpp"
#include "transports/in_flight.hpp"

namespace kplan::transport {

/// How letters of one object are told apart while they travel.
enum class LetterKind {
  even,      ///< to ranks that do not know of them, in exchanges of even number
  odd,       ///< the same in those of odd number
  expected,  ///< to ranks that know of them
};
inline constexpr int any_rank = -1;

/// What a backend does for one exchange object. Nothing here blocks.
class Mail {
 public:
  virtual ~Mail() = default;

  virtual int rank() const = 0;
  /// Throws TransportError when the backend can carry nothing any more.
  virtual void require_usable() const = 0;

  /// Forgets what was sent and received before. All has been taken and has come.
  virtual void clear() = 0;
  /// Sends a letter to another rank; its bytes stay.
  virtual void send(const OutgoingLetter& letter, LetterKind kind) = 0;
  /// Another rank, which this one knows of, sends a letter of the kind `expected`: it may be received before it is
  /// matched.
  virtual void expect(int /*source*/) {}
  /// See SparseExchange::keep.
  virtual void keep_memory(std::shared_ptr<const void> memory) = 0;
  /// Takes a letter of the own rank.
  virtual void keep(std::span<const std::byte> bytes) = 0;

  /// See SparseExchange; 0 where letters have no bodies, and then the rest is not called. They are sent with letters.
  virtual std::size_t least_body_bytes() const { return 0; }
  virtual void place_body(int /*from*/, std::span<const std::span<std::byte>>) {}
  /// Takes bodies that are there and have no place yet into memory of its own.
  virtual void take_early_bodies() {}
  /// Whether those that were sent have left, and those that have a place have come there.
  virtual bool are_bodies_done() { return true; }

  /// Whether all that was sent to ranks that did not know of it has been matched there, and the rest has left.
  virtual bool are_taken() = 0;
  /// Whether a letter was there, from that rank or from any_rank, the first one of its sender. It is arriving then.
  virtual bool match(int source, LetterKind kind) = 0;
  /// Whether all letters that were matched have come.
  virtual bool have_come() = 0;

  virtual std::span<const ReceivedLetter> received() const = 0;
  /// Puts those received into the order of their senders, and of sending.
  virtual void order() = 0;
  /// All has been taken and has come, bodies too.
  virtual void end() {}

  /// Enters the next barrier of all ranks; false while something of the last one is under way.
  virtual bool try_enter_barrier() = 0;
  virtual bool is_barrier_passed() = 0;

  /// Appends the ranks that have not taken a letter, whose letter is arriving, or whose step in the barrier is awaited.
  virtual void name_awaited(std::vector<int>& ranks) const = 0;
};

class Nbx final : public SparseExchange, private InFlight {
 public:
  /// The next exchange is number `first`: 0 but in tests.
  Nbx(std::unique_ptr<Mail> mail, std::shared_ptr<InFlightList> in_flight, std::uint64_t first);
  ~Nbx() override { in_flight_->remove(*this); }

  void keep(std::shared_ptr<const void> memory) override { mail_->keep_memory(std::move(memory)); }
  void begin(std::span<const OutgoingLetter> letters) override;
  void begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) override;
  bool is_complete() override;
  std::size_t least_body_bytes() const override { return mail_->least_body_bytes(); }
  bool letters_have_come() override;
  void place_body(int from, std::span<const std::span<std::byte>> regions) override;
  std::span<const ReceivedLetter> received() const override { return mail_->received(); }
  std::vector<int> waits_for() const override;

 private:
  LetterKind kind() const;
  void enter();
  void start(std::span<const OutgoingLetter> letters);
  void move(bool may_end);
  void move_on() override;
  void match_letters();
  bool are_letters_here();

  std::unique_ptr<Mail> mail_;
  std::shared_ptr<InFlightList> in_flight_;
  std::uint64_t number_;  // of the last exchange begun whose receivers do not know their sources
  bool is_complete_ = true;
  bool have_letters_come_ = false;  // in the exchange under way
  bool has_failed_ = false;
  bool knows_sources_ = false;  // in the exchange under way
  bool is_in_barrier_ = false;
  bool was_asked_ = false;        // since it was last moved on
  std::vector<int> outstanding_;  // sources whose letter was not matched
};

/// The dissemination barrier (Hensgen, Finkel, Manber, 1988): in round r a rank tells the one 2^r ahead that it has
/// come this far, and goes on once the one 2^r behind has told it the same; after the round in which 2^r reaches the
/// number of ranks it has heard of all. Each round has a sender of its own, so who sends tells the round; and what a
/// sender that is in the next barrier already sends comes behind that of this one.
struct Dissemination {
  int rank = 0, size = 1;

  int rounds() const {
    int out = 0;
    for (int distance = 1; distance < size; distance *= 2) ++out;
    return out;
  }
  int receiver(int round) const { return (rank + (1 << round)) % size; }
  int sender(int round) const { return (rank + size - (1 << round)) % size; }
};

}  // namespace kplan::transport
