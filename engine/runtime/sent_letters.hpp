#pragma once
// The letters that a varying statement sends in one exchange after the other, and the memory that they lie in: the
// exchange's own where it has room.

#include <exception>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/runtime/enclosed.hpp"
#include "engine/runtime/letter_head.hpp"
#include "engine/runtime/run_context.hpp"
#include "kplan/transport.hpp"

namespace kplan {

class SentLetters {
 public:
  using Letter = Unfilled<std::byte>;

  /// Keeps what else bodies of letters are listed in, come from or go to.
  void keep(std::shared_ptr<const void> other) { memory_->others.push_back(std::move(other)); }
  /// For exchanges to keep as long as letters may be read.
  std::shared_ptr<const void> memory() const { return memory_; }
  /// What the next exchange sends.
  std::vector<transport::OutgoingLetter>& list() { return list_; }

  /// The letters of the last exchange have been read, those of the next one follow, which carry these messages: add()
  /// leaves room for them.
  void clear(std::span<EnclosedMessage> enclosed = {});
  /// Adds a letter of so many bytes, to be written where this says; null where the exchange has no room for it.
  std::byte* add_in_room(transport::SparseExchange& exchange, int to, std::size_t bytes);
  /// The same, here where the exchange has none.
  std::byte* add(transport::SparseExchange& exchange, int to, std::size_t bytes);
  /// Gives the letter that was added last a body of so many bytes, to be written where this says, or from where these
  /// lie.
  std::byte* add_body(std::size_t bytes);
  void add_body(std::span<const std::span<const std::byte>> regions);
  /// A letter that grows, empty at first, until add_grown() adds them all.
  Letter& grown(std::int64_t to) { return memory_->grown[to]; }
  void add_grown(std::uint64_t uniform_hash);
  /// Sends nothing but the failure, and to these.
  void tell_failure(const std::exception_ptr& failure, std::span<const int> to);
  /// Adds a letter of nothing but a head, or of nothing at all, to those of these ranks that have no letter.
  void add_heads(std::span<const int> to, std::uint64_t uniform_hash);
  void add_empty(std::span<const int> to) { add_where_missing(to, {}); }
  /// Packs what they carry, once each of its receivers has a letter.
  void enclose(const RunContext& context);

 private:
  static constexpr std::size_t none = SIZE_MAX;
  struct Whole {
    std::size_t enclosed = none;  ///< number of the message at its end
    std::size_t bytes = 0;
  };
  Whole whole(int to, std::size_t bytes) const;
  std::byte* add(int to, std::byte* letter, const Whole& whole);
  std::byte* add_here(int to, const Whole& whole);
  void forget();
  void add_where_missing(std::span<const int> to, std::span<const std::byte> letter);

  struct Body {
    Letter packed;
    std::vector<std::span<const std::byte>> regions;
  };
  Body& body();

  struct Memory {
    std::map<std::int64_t, Letter> grown;
    std::vector<Letter> added;  ///< by their place in the list, where the exchange has no room for them
    std::vector<Body> bodies;   ///< by the same
    LetterHead head;
    std::vector<std::shared_ptr<const void>> others;
  };
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  std::vector<transport::OutgoingLetter> list_;
  std::span<EnclosedMessage> enclosed_;
  std::vector<std::byte*> places_;  ///< of those messages in their letters
};

/// Where letters of an exchange are added.
struct Outbox {
  SentLetters& letters;
  transport::SparseExchange& exchange;
  std::uint64_t uniform_hash = 0;  ///< for their heads
};

}  // namespace kplan
