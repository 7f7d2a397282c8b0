#pragma once
// Messages of any size between ranks: a note says what each is, and carries its bytes if they are few; else these
// follow as a message of their own. Notes from one rank to another are taken in the order in which they were sent.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "transports/ofi/memory.hpp"

namespace kplan::transport::ofi_backend {

/// What a note says.
enum class Word : std::uint32_t {
  hello,     ///< nothing; opens the connection
  farewell,  ///< the sender ends; it wants to know that all its notes were taken
  heard,     ///< all notes up to a farewell were taken
  put,       ///< a message of a channel, for the slot `number`
  credit,    ///< the receiver has released a message of the sending end `number`
  closed,    ///< the other end of `number` is closed; if it sent, `value` messages
  settled,   ///< all messages of the sending end `number`, which is closed, have come
  letter,    ///< of the sparse exchange `number`; `value` says which exchange of it
  taken,     ///< a letter of the sparse exchange `number` was taken
  barrier,   ///< of the sparse exchange `number`: its round `value`
};

struct Note {
  std::uint32_t order = 0;  ///< among those from this sender to this receiver
  std::int32_t from = 0;
  Word word = Word::hello;
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  std::uint64_t bytes = 0;  ///< that belong to it
};

/// Who takes notes.
class Recipient {
 public:
  struct Place {
    std::byte* memory = nullptr;  ///< for the bytes
    void* whose = nullptr;        ///< given back when they are there
  };
  /// A note has come; says where its bytes belong, if it has any.
  virtual Place take(const Note& note) = 0;
  /// Its bytes are there.
  virtual void filled(const Note& note, void* whose) = 0;

 protected:
  ~Recipient() = default;
};

class Post;

/// Bytes on their way, which must stay as they are until they are sent. Serves one message after the other.
class Parcel final : public Operation {
 public:
  Parcel(Post& post, int to) : Operation(to), post_(&post) {}
  bool is_sent() const { return is_sent_; }

 private:
  friend Post;
  ssize_t post() override;
  void ended() override;

  Post* post_;
  const std::byte* data_ = nullptr;
  std::size_t left_ = 0;
  std::uint64_t number_ = 0;
  Registration registration_;
  bool is_sent_ = true;
};

class Post {
 public:
  /// `piece_bytes`: the most that one bulk message carries. Errors: TransportError, std::bad_alloc.
  Post(Endpoint& endpoint, Recipient& recipient, int rank, int size, std::size_t piece_bytes);
  ~Post();

  /// Sends a note. Errors: std::bad_alloc, when very many wait for room.
  void send(int to, Word word, std::uint32_t number, std::uint64_t value = 0) {
    (void)send(to, word, number, value, {});
  }
  /// With bytes; the parcel says when they are sent, which is at once if they are few.
  void send(int to, Word word, std::uint32_t number, std::uint64_t value, std::span<const std::byte> bytes,
            Parcel& parcel);

  /// Whether all notes to that rank have left.
  bool is_idle_with(int rank) const { return under_way_[static_cast<std::size_t>(rank)] == 0; }
  /// Whether anything was ever sent to that rank.
  bool has_sent_to(int rank) const { return sent_[static_cast<std::size_t>(rank)] > 0; }

 private:
  friend Parcel;
  class Incoming;
  class Outgoing;
  class Arriving;

  bool send(int to, Word word, std::uint32_t number, std::uint64_t value, std::span<const std::byte> bytes);
  Outgoing& outgoing();
  void came(Incoming& incoming);
  void dispatch(const Note& note, const std::byte* bytes);
  void add_incoming(std::size_t count);

  Endpoint& endpoint_;
  Recipient& recipient_;
  int rank_;
  std::size_t piece_bytes_;
  std::vector<std::uint32_t> sent_, taken_, under_way_;    // notes, by rank
  std::vector<std::uint64_t> bulks_sent_, bulks_taken_;    // by rank
  std::vector<std::map<std::uint32_t, Incoming*>> early_;  // notes before whose turn, by rank
  std::vector<std::unique_ptr<Incoming>> incoming_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::vector<Outgoing*> free_outgoing_;
  std::vector<std::unique_ptr<Arriving>> arriving_;
  std::vector<Arriving*> free_arriving_;
};

}  // namespace kplan::transport::ofi_backend
