#include "engine/runtime/pattern_letter.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/analysis/notice_bytes.hpp"

namespace kplan {
namespace {

PatternHeader header_of(std::span<const std::byte> letter) {
  PatternHeader out;
  if (letter.size() < sizeof out) fail_damaged_letter();
  std::memcpy(&out, letter.data(), sizeof out);
  return out;
}

void set_header(Unfilled<std::byte>& letter, const PatternHeader& header) {
  std::memcpy(letter.data(), &header, sizeof header);
}

}  // namespace

void begin_pattern_letter(Unfilled<std::byte>& letter) {
  if (!letter.empty()) return;
  letter.resize(sizeof(PatternHeader));
  set_header(letter, {});
}

void add_notice(Unfilled<std::byte>& letter, int statement, const Notice& notice) {
  begin_pattern_letter(letter);
  PatternHeader header = header_of(letter);
  append_notice(statement, notice, letter);
  header.notice_bytes = letter.size() - sizeof header;
  set_header(letter, header);
}

std::byte* add_message(Unfilled<std::byte>& letter, const Message& message, std::size_t bytes) {
  begin_pattern_letter(letter);
  PatternHeader header = header_of(letter);
  header.payload_offset_bytes = aligned_in_letter(letter.size());
  header.element_count = message.element_count;
  header.digest = message.digest;
  letter.resize(header.payload_offset_bytes, std::byte{});
  letter.resize(header.payload_offset_bytes + bytes);
  set_header(letter, header);
  return letter.data() + header.payload_offset_bytes;
}

[[gnu::hot]] std::byte* begin_message_letter(std::byte* letter, std::uint64_t uniform_hash, const Message* message) {
  PatternHeader header;
  header.head.uniform_hash = uniform_hash;
  header.payload_offset_bytes = sizeof header;
  if (message) header.element_count = message->element_count, header.digest = message->digest;
  std::memcpy(letter, &header, sizeof header);
  return letter + sizeof header;
}

void write_body_letter(std::byte* letter, std::uint64_t uniform_hash, const Message& message) {
  PatternHeader header;
  header.head = {LetterKind::pattern_and_body, uniform_hash};
  header.element_count = message.element_count;
  header.digest = message.digest;
  std::memcpy(letter, &header, sizeof header);
}

[[gnu::hot]] ArrivedPattern read_pattern_letter(std::span<const std::byte> letter, std::int64_t from) {
  const PatternHeader header = header_of(letter);
  ArrivedPattern out{from, {}, {}, has_body(header.head), header.element_count, header.digest};
  if (header.notice_bytes > 0) {
    std::span<const std::byte> rest = letter.subspan(sizeof header, header.notice_bytes);
    out.notice = take_notice(rest, from).notice;
  }
  if (header.payload_offset_bytes > 0) out.payload = letter.subspan(header.payload_offset_bytes);
  return out;
}

[[gnu::hot]] void ArrivedPatterns::order() {
  if (!std::ranges::is_sorted(all_, {}, &ArrivedPattern::from)) std::ranges::sort(all_, {}, &ArrivedPattern::from);
}

[[gnu::hot]] const ArrivedPattern* ArrivedPatterns::from(std::int64_t peer) const {
  const auto at = std::ranges::lower_bound(all_, peer, {}, &ArrivedPattern::from);
  return at != all_.end() && at->from == peer ? &*at : nullptr;
}

void ArrivedPatterns::set_payload(std::int64_t peer, std::span<const std::byte> payload) {
  const auto at = std::ranges::lower_bound(all_, peer, {}, &ArrivedPattern::from);
  if (at != all_.end() && at->from == peer) at->payload = payload;
}

std::vector<Notice> ArrivedPatterns::take_notices() {
  std::vector<Notice> out;
  for (ArrivedPattern& arrived : all_)
    if (arrived.notice) out.push_back(*std::exchange(arrived.notice, std::nullopt));
  return out;
}

}  // namespace kplan
