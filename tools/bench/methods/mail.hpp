#pragma once
// Exchanges that are new in every run: what each rank sends then, and the memory that it sends from and receives into.

#include <algorithm>
#include <memory>
#include <vector>

#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/team.hpp"

namespace kplan::bench {

/// What a rank sends in one exchange: a letter for each target, one after the other in the outboxes.
struct Letters {
  std::vector<std::int32_t> targets, counts, firsts;
  std::vector<std::int32_t> elements;  ///< if any: counts and firsts are of this list of places in the outboxes
};

/// The rank's memory. A letter from rank s is to lie in row s of the inboxes, with its length in received[s].
struct Mail {
  Mail(const Team& team, std::int64_t longest, std::size_t fields, std::int64_t outbox_length, std::int64_t listed);

  Team team;
  std::int64_t longest;                          ///< elements of a row
  std::vector<AlignedMemory> outboxes, inboxes;  ///< f64, of each field
  AlignedMemory received;                        ///< i32
  std::vector<Letters> exchanges;                ///< by turns
  std::size_t turn = 0;
  std::vector<std::int32_t> elements;  ///< the list of the exchange whose turn it is

  /// The next exchange, of which the list is in `elements` then, as a program would have made it there.
  const Letters& next() {
    const Letters& out = exchanges[turn++ % exchanges.size()];
    std::ranges::copy(out.elements, elements.begin());
    return out;
  }
  std::size_t fields() const { return outboxes.size(); }
  double* row(std::size_t field, int sender) { return inboxes[field].as<double>().data() + sender * longest; }
  void clear_received() {
    for (std::int32_t& count : received.as<std::int32_t>()) count = 0;
  }
};

/// A mail's letters as messages by hand: where they lie if that is in one piece, else packed field by field.
class MailMessages {
 public:
  explicit MailMessages(std::shared_ptr<Mail> mail);

  /// Where all messages to others are, and where one begins there.
  const double* outgoing() const { return outgoing_; }
  int first(const Letters& l, std::size_t k) const { return l.firsts[k] * fields_; }
  int length(const Letters& l, std::size_t k) const { return l.counts[k] * fields_; }
  /// Packs letter k.
  void pack(const Letters& l, std::size_t k);

  /// The same at the other end: one for every rank, of as much as there is room for.
  double* arriving() const { return arriving_; }
  int place(int sender) const { return static_cast<int>(sender * mail_->longest) * fields_; }
  int room() const { return static_cast<int>(mail_->longest) * fields_; }
  /// Unpacks what has come from a sender, and says how much in received.
  void unpack(int sender, int length);

 private:
  std::shared_ptr<Mail> mail_;
  int fields_;
  AlignedMemory packed_, came_;
  double *outgoing_, *arriving_;
};

}  // namespace kplan::bench
