#include "engine/runtime/letter_head.hpp"

#include <cstring>

#include "engine/failure.hpp"
#include "kplan/transport.hpp"

namespace kplan {

void fail_damaged_letter() {
  throw TransportError("KP-T012", "a message of a varying statement has come damaged; do all ranks run one build?");
}

[[gnu::hot]] LetterHead head_of(std::span<const std::byte> letter) {
  LetterHead head;
  if (letter.size() < sizeof head) fail_damaged_letter();
  std::memcpy(&head, letter.data(), sizeof head);
  if (head.kind > LetterKind::head) fail_damaged_letter();
  return head;
}

void set_uniform_hash(Unfilled<std::byte>& letter, std::uint64_t hash) {
  LetterHead head = head_of(letter);
  head.uniform_hash = hash;
  std::memcpy(letter.data(), &head, sizeof head);
}

Unfilled<std::byte> failure_letter(const std::exception_ptr& failure) {
  std::string text = encode_failure(failure);
  text.resize(aligned_in_letter(text.size()), ' ');  // for what the letter carries behind it
  const LetterHead head{LetterKind::failure};
  Unfilled<std::byte> out(sizeof head + text.size());
  std::memcpy(out.data(), &head, sizeof head);
  std::memcpy(out.data() + sizeof head, text.data(), text.size());
  return out;
}

std::exception_ptr failure_in(std::span<const std::byte> letter, int rank) {
  letter = letter.subspan(sizeof(LetterHead));
  return decode_failure({reinterpret_cast<const char*>(letter.data()), letter.size()}, rank);
}

}  // namespace kplan
