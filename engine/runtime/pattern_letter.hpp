#pragma once
// Letters of the general way: a header, perhaps a notice (the where-bound values that the other end needs), and perhaps
// the message itself.

#include <optional>
#include <span>
#include <vector>

#include "engine/analysis/pattern.hpp"
#include "engine/runtime/letter_head.hpp"
#include "engine/schedule/schedule.hpp"

namespace kplan {

struct PatternHeader {
  LetterHead head;
  std::uint64_t notice_bytes = 0;
  std::uint64_t digest = 0;
  std::int64_t element_count = 0;
  std::uint64_t payload_offset_bytes = 0;  ///< 0: no message
};
static_assert(sizeof(PatternHeader) % letter_alignment_bytes == 0);

// Writing: a letter is begun, gets its notice and then its message.

/// Does nothing if it is begun.
void begin_pattern_letter(Unfilled<std::byte>& letter);
void add_notice(Unfilled<std::byte>& letter, int statement, const Notice& notice);
/// Returns where the message's bytes are to be written. Begins the letter where that was not done.
std::byte* add_message(Unfilled<std::byte>& letter, const Message& message, std::size_t bytes);

/// Bytes of a letter with a message and no notice.
constexpr std::size_t message_letter_bytes(std::size_t message_bytes) { return sizeof(PatternHeader) + message_bytes; }
/// Begins such a letter; returns where the message's bytes are to be written. `message`: for its receiver to compare.
std::byte* begin_message_letter(std::byte* letter, std::uint64_t uniform_hash = 0, const Message* message = nullptr);
/// Writes one of no bytes, whose message is its body.
void write_body_letter(std::byte* letter, std::uint64_t uniform_hash, const Message& message);

/// What such a letter holds.
struct ArrivedPattern {
  std::int64_t from = 0;  ///< number in the group
  std::optional<Notice> notice;
  std::span<const std::byte> payload;
  bool has_body = false;  ///< in place of it
  std::int64_t element_count = 0;
  std::uint64_t digest = 0;
};
/// Throws TransportError (KP-T012) where it is damaged.
ArrivedPattern read_pattern_letter(std::span<const std::byte> letter, std::int64_t from);

/// Those of one exchange.
class ArrivedPatterns {
 public:
  void clear() { all_.clear(); }
  void add(ArrivedPattern arrived) { all_.push_back(std::move(arrived)); }
  /// By ascending sender, once all are here: groups have an order of their own.
  void order();

  // Once they are in order.

  std::span<const ArrivedPattern> all() const { return all_; }
  /// Null where nothing has come from there.
  const ArrivedPattern* from(std::int64_t peer) const;
  /// Where the body is that has come from there.
  void set_payload(std::int64_t peer, std::span<const std::byte> payload);
  /// The notices, which are no longer here then.
  std::vector<Notice> take_notices();

 private:
  std::vector<ArrivedPattern> all_;
};

}  // namespace kplan
