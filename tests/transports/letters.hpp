#pragma once
// What the cases of sparse exchanges share: mail that every rank plans alike, from a seed, so that each knows what it
// must get; and an exchange that sends a rank's part of it and claims what comes.

#include <memory>
#include <random>
#include <vector>

#include "tests/transports/ranks.hpp"

namespace kplan::tests {

using transport::SparseExchange;

/// A letter as planned; its bytes follow from the seed of its mail and from its place there.
struct PlannedLetter {
  int from = 0;
  int to = 0;
  std::size_t bytes = 0;
};

/// All letters of one exchange; those of one rank in the order in which it sends them.
struct Mail {
  unsigned seed = 0;
  std::vector<PlannedLetter> letters;
};

/// Whether the receivers know who sends to them.
enum class Sources : bool { unknown, known };

/// About every third pair of ranks, also of a rank and itself, has up to `most_each` letters of up to `most_bytes`
/// bytes; many are short or empty.
Mail random_mail(int ranks, unsigned seed, std::size_t most_bytes, int most_each);

/// Waits for up to `most_microseconds`, or quite often not at all.
void dawdle(std::minstd_rand& random, unsigned most_microseconds);

/// One rank's part of one exchange object.
class Correspondent {
 public:
  /// Collective: opens the object.
  explicit Correspondent(Transport& transport) : Correspondent(transport, transport.open_exchange(soon())) {}
  Correspondent(Transport& transport, std::unique_ptr<SparseExchange> exchange)
      : transport_(transport), exchange_(std::move(exchange)) {}

  void begin(Mail mail, Sources sources = Sources::unknown);
  /// Waits until it is complete, claims that what came is what was planned, and spoils the own letters.
  void finish();
  void claim_received() const;
  /// Closes the object, and keeps the own letters as they are: nothing says that they have been sent.
  void give_up() { exchange_.reset(); }
  SparseExchange& exchange() const { return *exchange_; }

 private:
  Transport& transport_;
  Mail mail_;
  std::vector<std::vector<std::byte>> own_bytes_;  // in the order of the own letters
  std::unique_ptr<SparseExchange> exchange_;
};

}  // namespace kplan::tests
