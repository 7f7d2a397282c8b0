#pragma once
// Where letters and the tokens of barriers wait for the sparse exchange objects that they are for.

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "transports/letter.hpp"
#include "transports/nbx.hpp"
#include "transports/ofi/post.hpp"

namespace kplan::transport::ofi_backend {

/// What has come for one object and was not taken.
class Mailbox {
 public:
  explicit Mailbox(int ranks) : expected_(static_cast<std::size_t>(ranks)) {}

  void put(LetterPtr letter, LetterKind kind);
  /// The first of that kind, from that rank if it is expected; null if there is none.
  LetterPtr take(int source, LetterKind kind);
  /// Of any kind.
  LetterPtr take_any();

  int untaken(int rank) const { return untaken_.empty() ? 0 : untaken_[static_cast<std::size_t>(rank)]; }
  int untaken() const { return all_untaken_; }
  /// Counts letters of its own that are sent (1), or taken (-1).
  void count_untaken(int rank, int change);

  std::array<unsigned, 32> tokens{};  ///< by round of a barrier

 private:
  LetterList even_, odd_;
  std::vector<LetterList> expected_;  // by sender
  std::vector<int> untaken_;          // by receiver, once there is any
  int all_untaken_ = 0;
};

class Mailboxes {
 public:
  /// `ranks` of the world.
  explicit Mailboxes(int ranks) : ranks_(ranks) {}

  /// The next object's, which all ranks number alike.
  std::uint32_t open();
  Mailbox& at(std::uint32_t number) { return *boxes_.at(number); }
  void close(std::uint32_t number);
  /// Takes care of a letter that its object has no more use for, though its bytes may be on their way.
  void discard(LetterPtr letter);

  /// A note of the words `letter`, `taken` or `barrier` has come.
  Recipient::Place take(const Note& note);
  /// The bytes of a letter have come.
  void filled(void* letter);

  LetterPool& pool() { return pool_; }
  const std::shared_ptr<InFlightList>& in_flight() const { return in_flight_; }

 private:
  Mailbox* find(std::uint32_t number);

  int ranks_;
  std::uint32_t opened_ = 0;
  std::map<std::uint32_t, std::unique_ptr<Mailbox>> boxes_;
  std::map<void*, LetterPtr> orphans_;  // letters without an object, until they have come
  LetterPool pool_;
  std::shared_ptr<InFlightList> in_flight_ = std::make_shared<InFlightList>();
};

}  // namespace kplan::transport::ofi_backend
