#include "engine/runtime/placement.hpp"

#include <algorithm>

namespace kplan {
namespace {

bool is_long_enough(const Message& m, const PlacingLimits& limits) {
  // Transports count blocks and their bytes in ints.
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  return limits.least_bytes > 0 && static_cast<std::size_t>(m.bytes) >= limits.least_bytes && m.bytes <= most_bytes;
}

/// Whether the piece's elements follow each other in the message, from `at` on.
bool goes_straight(const Piece& piece, std::int64_t at, std::int64_t element_bytes) {
  const Track& message = piece.tracks.back();
  std::int64_t inside = element_bytes;
  for (std::size_t d = piece.counts.size(); d-- > 0; inside *= piece.counts[d])
    if (message.strides[d] != inside) return false;
  for (std::size_t o = 0; o < message.bases.size(); ++o)
    if (message.bases[o] != at + static_cast<std::int64_t>(o) * inside) return false;
  return message.bases.size() == static_cast<std::size_t>(piece.list_length);
}

}  // namespace

/// Adds what one transfer moves; false where it cannot be placed.
bool Placement::add(const Transfer& t, int buffer, std::int64_t element_bytes, const PlacingLimits& limits) {
  if (!goes_straight(t.piece, message_bytes_, element_bytes)) return false;
  const Track& track = t.piece.tracks[0];
  if (std::ranges::any_of(track.strides, [](std::int64_t stride) { return stride <= 0; })) return false;
  transport::Blocks blocks{nullptr, track.bases, t.piece.counts, track.strides, element_bytes};
  while (!blocks.counts.empty() && blocks.strides_bytes.back() == blocks.block_bytes) {
    blocks.block_bytes *= blocks.counts.back();
    blocks.counts.pop_back();
    blocks.strides_bytes.pop_back();
  }
  if (static_cast<std::size_t>(blocks.block_bytes) < limits.least_block_bytes) return false;
  message_bytes_ += t.piece.element_count() * element_bytes;
  buffers_.push_back(buffer);
  blocks_.push_back(std::move(blocks));
  return true;
}

std::unique_ptr<Placement> Placement::of_sent(const Statement& statement, const StatementSchedule& s, const Message& m,
                                              const PlacingLimits& limits) {
  if (s.reads_what_it_writes || !is_long_enough(m, limits)) return nullptr;
  auto out = std::make_unique<Placement>();
  for (const Transfer& t : m.transfers) {
    const auto k = static_cast<std::size_t>(t.reduction);
    const ValueForm& form = s.values[k];
    if (form.value->kind != ExprKind::element) return nullptr;
    const auto bytes = static_cast<std::int64_t>(statement.reductions[k].value_type.size_bytes);
    if (!out->add(t, form.value->id, bytes, limits)) return nullptr;
  }
  return out->is_whole(m) ? std::move(out) : nullptr;
}

std::unique_ptr<Placement> Placement::of_received(const Statement& statement, const StatementSchedule& s,
                                                  const Message& m, const PlacingLimits& limits) {
  if (s.reads_what_it_writes || s.is_in_sender_order || !is_long_enough(m, limits)) return nullptr;
  auto out = std::make_unique<Placement>();
  for (const Transfer& t : m.transfers) {
    const Reduction& r = statement.reductions[static_cast<std::size_t>(t.reduction)];
    if (!t.is_assign || !t.is_injective || r.value_type != r.place_type) return nullptr;
    if (!out->add(t, r.place->id, static_cast<std::int64_t>(r.place_type.size_bytes), limits)) return nullptr;
  }
  return out->is_whole(m) ? std::move(out) : nullptr;
}

void Placement::tell(transport::Channel& channel, const std::vector<BoundMemory>& memory) {
  for (std::size_t k = 0; k < blocks_.size(); ++k) blocks_[k].base = memory[static_cast<std::size_t>(buffers_[k])].base;
  channel.place(blocks_);
}

}  // namespace kplan
