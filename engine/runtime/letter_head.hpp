#pragma once
// How the letters of varying statements begin, and those that tell of a failure.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

#include "engine/analysis/unfilled.hpp"

namespace kplan {

enum class LetterKind : std::uint64_t {
  pattern,           ///< pattern_letter.hpp
  pattern_and_body,  ///< the same, whose message is its body
  failure,           ///< what has failed at the sender
  rows,              ///< row_letters.hpp
  rows_and_body,     ///< the same, whose values are its body where they may be
  head,              ///< nothing else: for its hash
};

struct LetterHead {
  LetterKind kind = LetterKind::pattern;
  std::uint64_t uniform_hash = 0;  ///< of the varying values that must be the same on all ranks
};

/// Whether a letter of a pull asks for values.
inline bool asks(const LetterHead& head) { return head.kind == LetterKind::pattern || head.kind == LetterKind::rows; }

inline bool has_body(const LetterHead& head) {
  return head.kind == LetterKind::pattern_and_body || head.kind == LetterKind::rows_and_body;
}

constexpr std::size_t letter_alignment_bytes = 16;  ///< of what follows the head and of messages in letters

static_assert(sizeof(LetterHead) % letter_alignment_bytes == 0);

inline std::size_t aligned_in_letter(std::size_t bytes) {
  return (bytes + letter_alignment_bytes - 1) / letter_alignment_bytes * letter_alignment_bytes;
}

[[noreturn]] void fail_damaged_letter();

/// Throws TransportError (KP-T012) where the letter is too short or of no kind.
LetterHead head_of(std::span<const std::byte> letter);
/// Of any letter that has a head.
void set_uniform_hash(Unfilled<std::byte>& letter, std::uint64_t hash);

Unfilled<std::byte> failure_letter(const std::exception_ptr& failure);
/// As it is to be thrown here. `rank`: the sender.
std::exception_ptr failure_in(std::span<const std::byte> letter, int rank);

}  // namespace kplan
