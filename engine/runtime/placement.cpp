// How it works: each part whose elements follow each other in the message is written down as the nest or list of
// blocks that it is, runs joined. The transport walks each block with every message, where packing walks memory once
// more, so what counts is how long blocks are on average.
#include "engine/runtime/placement.hpp"

#include <algorithm>
#include <limits>

namespace kplan {
namespace {

constexpr std::size_t long_block_bytes = 40, least_block_bytes_beside_parts = 20;

/// Of messages that move: what describes them is made in each run that finds them elsewhere.
constexpr std::int64_t most_moving_offsets = 64;

bool is_long_enough(const Message& m, const PlacingLimits& limits) {
  // Transports count blocks and their bytes in ints.
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  return limits.least_bytes > 0 && m.bytes >= static_cast<std::int64_t>(limits.least_bytes) && m.bytes <= most_bytes;
}

/// Whether the piece's elements follow each other in the message, from `at` on.
bool goes_straight(const Piece& piece, std::int64_t at, std::int64_t element_bytes) {
  const Track& message = piece.tracks.back();
  std::int64_t inside = element_bytes;
  for (std::size_t d = piece.counts.size(); d-- > 0; inside *= piece.counts[d])
    if (message.strides[d] != inside) return false;
  for (std::int64_t o = 0; o < piece.list_length; ++o)
    if (message.base(o) != at + o * inside) return false;
  return true;
}

}  // namespace

PlacingLimits PlacingLimits::beside_parts() const {
  PlacingLimits out = *this;
  if (out.least_block_bytes > 0)
    out.least_block_bytes = std::max(out.least_block_bytes, least_block_bytes_beside_parts);
  return out;
}

/// Adds what one part moves; false where it cannot be placed.
bool Placement::add(const MessagePart& part, int buffer, std::int64_t element_bytes) {
  std::vector<Piece> runs = split_into_runs(part.piece);
  if (runs.empty()) return add(part.piece, buffer, element_bytes);
  return std::ranges::all_of(runs, [&](Piece& piece) { return add(std::move(piece), buffer, element_bytes); });
}

bool Placement::add(Piece piece, int buffer, std::int64_t element_bytes) {
  // Loops that go backwards are written out: MPI's implementations have their troubles with them.
  constexpr std::int64_t most_offsets = 4096;
  while (std::ranges::any_of(piece.tracks[0].strides, [](std::int64_t stride) { return stride <= 0; })) {
    if (piece.list_length * piece.counts[0] > most_offsets) return false;
    unfold_dimension(piece);
  }
  const Track& track = piece.tracks[0];
  transport::Blocks blocks{nullptr, {}, piece.counts, track.strides, element_bytes};
  while (!blocks.counts.empty() && blocks.strides_bytes.back() == blocks.block_bytes) {
    blocks.block_bytes *= blocks.counts.back();
    blocks.counts.pop_back();
    blocks.strides_bytes.pop_back();
  }
  // What describes an offset is as long as a few blocks, and is read again with every message.
  constexpr std::int64_t blocks_for_an_offset = 2;
  const std::int64_t bytes = piece.element_count() * element_bytes;
  block_count_ += bytes / blocks.block_bytes;
  if (piece.list_length > 1) block_count_ += blocks_for_an_offset * piece.list_length;
  offset_count_ += piece.list_length;
  if ((is_moving_ && offset_count_ > most_moving_offsets) || block_count_ > most_blocks_ ||
      !goes_straight(piece, message_bytes_, element_bytes))
    return false;
  const Words offsets = track.listed_bases(piece.list_length);
  blocks.offsets_bytes.assign(offsets.begin(), offsets.end());
  message_bytes_ += bytes;
  buffers_.push_back(buffer);
  blocks_.push_back(std::move(blocks));
  return true;
}

Placement::Placement(const Message& m, const PlacingLimits& limits)
    : most_blocks_(limits.least_block_bytes == 0 ? std::numeric_limits<std::int64_t>::max()
                                                 : m.bytes / static_cast<std::int64_t>(limits.least_block_bytes)),
      is_moving_(limits.is_moving) {}

std::unique_ptr<Placement> Placement::of_sent(const Statement& statement, const StatementSchedule& s, const Message& m,
                                              const PlacingLimits& limits) {
  if (s.reads_what_it_writes || !is_long_enough(m, limits)) return nullptr;
  std::unique_ptr<Placement> out(new Placement(m, limits));
  for (const MessagePart& part : m.parts) {
    const auto k = static_cast<std::size_t>(part.reduction);
    const ValueForm& form = s.values[k];
    if (form.value->kind != ExprKind::element) return nullptr;
    const auto bytes = static_cast<std::int64_t>(statement.reductions[k].value_type.size_bytes);
    if (!out->add(part, form.value->id, bytes)) return nullptr;
  }
  return out->message_bytes_ == m.bytes ? std::move(out) : nullptr;
}

std::unique_ptr<Placement> Placement::of_received(const Statement& statement, const StatementSchedule& s,
                                                  const Message& m, const PlacingLimits& limits) {
  if (s.reads_what_it_writes || s.is_in_sender_order || !is_long_enough(m, limits)) return nullptr;
  std::unique_ptr<Placement> out(new Placement(m, limits));
  for (const MessagePart& part : m.parts) {
    const Reduction& r = statement.reductions[static_cast<std::size_t>(part.reduction)];
    if (!part.is_assign || !part.is_injective || r.value_type != r.place_type) return nullptr;
    if (!out->add(part, r.place->id, static_cast<std::int64_t>(r.place_type.size_bytes))) return nullptr;
  }
  return out->message_bytes_ == m.bytes ? std::move(out) : nullptr;
}

bool Placement::has_long_blocks() const {
  return message_bytes_ >= static_cast<std::int64_t>(long_block_bytes) * block_count_;
}

void Placement::tell(transport::Channel& channel, const std::vector<BoundMemory>& memory) {
  for (std::size_t k = 0; k < blocks_.size(); ++k) blocks_[k].base = memory[static_cast<std::size_t>(buffers_[k])].base;
  channel.place(blocks_);
}

template <class Byte>
void Placement::list_blocks(const std::vector<BoundMemory>& memory, std::vector<std::span<Byte>>& to) const {
  const auto list = [&](const transport::Blocks& b, std::byte* at, std::size_t loop, const auto& inner) -> void {
    if (loop == b.counts.size()) return static_cast<void>(to.emplace_back(at, static_cast<std::size_t>(b.block_bytes)));
    for (std::int64_t k = 0; k < b.counts[loop]; ++k) inner(b, at + k * b.strides_bytes[loop], loop + 1, inner);
  };
  for (std::size_t k = 0; k < blocks_.size(); ++k)
    for (const std::int64_t offset : blocks_[k].offsets_bytes)
      list(blocks_[k], memory[static_cast<std::size_t>(buffers_[k])].base + offset, 0, list);
}

template void Placement::list_blocks(const std::vector<BoundMemory>&, std::vector<std::span<std::byte>>&) const;
template void Placement::list_blocks(const std::vector<BoundMemory>&, std::vector<std::span<const std::byte>>&) const;

}  // namespace kplan
