#include "engine/runtime/letter.hpp"

#include <cstring>

#include "engine/failure.hpp"
#include "kplan/transport.hpp"

namespace kplan {
namespace {

template <class T>
T front_of(std::span<const std::byte> letter) {
  T out;
  if (letter.size() < sizeof out) fail_damaged_letter();
  std::memcpy(&out, letter.data(), sizeof out);
  return out;
}

}  // namespace

void fail_damaged_letter() {
  throw TransportError("KP-T012", "a message of a varying statement has come damaged; do all ranks run one build?");
}

[[gnu::hot]] LetterHead head_of(std::span<const std::byte> letter) {
  const auto head = front_of<LetterHead>(letter);
  if (head.kind > LetterKind::head) fail_damaged_letter();
  return head;
}

[[gnu::hot]] PatternHeader pattern_header_of(std::span<const std::byte> letter) {
  return front_of<PatternHeader>(letter);
}

void set_header(Unfilled<std::byte>& letter, const PatternHeader& header) {
  if (letter.size() < sizeof header) letter.resize(sizeof header);
  std::memcpy(letter.data(), &header, sizeof header);
}

void set_uniform_hash(Unfilled<std::byte>& letter, std::uint64_t hash) {
  LetterHead head = head_of(letter);
  head.uniform_hash = hash;
  std::memcpy(letter.data(), &head, sizeof head);
}

Unfilled<std::byte> failure_letter(const std::exception_ptr& failure) {
  const std::string text = encode_failure(failure);
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
