#pragma once
// The letters that come to a rank in one exchange after the other, from the moment when they are matched; those from
// sources that it knows, from before.

#include <algorithm>
#include <map>
#include <vector>

#include "transports/letter.hpp"
#include "transports/mpi/world.hpp"

namespace kplan::transport::mpi_backend {

/// How letters to ranks that expect them travel: in one message, for which a receive is under way when it comes, since
/// MPI copies long ones that come unexpected once more. Two messages that MPI sends without asking the receiver are
/// faster than one of twice as much: then, and where a letter is longer than that receive, the first has `unasked`
/// bytes, and another follows it, if only an empty one.
struct FirstMessage {
  std::size_t most;     ///< bytes that the receive has room for
  std::size_t unasked;  ///< bytes that MPI sends without asking

  explicit FirstMessage(const Limits& limits)
      : most(std::min<std::size_t>(256 << 10, static_cast<std::size_t>(limits.max_count))),
        unasked(std::min<std::size_t>(3968, most)) {}

  /// Of a letter of so many bytes.
  std::size_t bytes_of(std::size_t letter_bytes) const {
    return letter_bytes > 2 * unasked && letter_bytes <= most ? letter_bytes : std::min(letter_bytes, unasked);
  }
  /// Whether another follows one of so many bytes.
  bool has_rest(std::size_t bytes) const { return bytes == unasked; }
};

class Inbox {
 public:
  explicit Inbox(World& world) : world_(&world), first_message_(world.limits()) {}

  /// Begins anew; the letters' memory is used again. Nothing may be arriving.
  void clear();
  /// Takes a letter of the own rank, at once.
  void take_own(std::span<const std::byte> bytes);
  /// Whether a letter was there, from `source` or from any rank; it is arriving then.
  bool match(int source, int tag);
  /// Begins to receive a letter from a rank that sends one. The tag is always the same.
  void expect(int source, int tag);
  /// Whether it is there, or arriving.
  bool match_expected(int source, int tag);
  /// Notes which letters have come since they were matched. Never blocks.
  void finish();
  bool is_arriving() const { return !arriving_.empty(); }
  std::vector<int> arriving_from() const;

  /// Those that have come.
  std::span<const ReceivedLetter> received() const { return received_; }
  /// Once none is arriving: from the order in which they came to that of senders and of sending.
  void order();

  /// Hands over what is arriving.
  void close();
  /// Gives up all memory, when MPI has failed and may still write to it.
  void leak();

 private:
  struct Incoming {
    LetterPtr letter;  ///< null: it lies in a Source
    ReceivedLetter view;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// What comes first from a rank that is known to send.
  struct Source {
    SlotMemory memory;
    MPI_Request request = MPI_REQUEST_NULL;  ///< persistent
    bool is_under_way = false;
  };
  bool match_after(const Source* first, int source, int tag);

  World* world_;
  FirstMessage first_message_;
  std::vector<Incoming> incoming_;     // in the order in which they were matched
  std::vector<std::size_t> arriving_;  // places in incoming_
  std::vector<ReceivedLetter> received_;
  std::map<int, Source> sources_;
  LetterPool pool_;
};

}  // namespace kplan::transport::mpi_backend
