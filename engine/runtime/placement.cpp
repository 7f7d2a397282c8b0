// How it works: each transfer whose elements follow each other in the message is written down as the nest or list of
// blocks that it is, runs joined. Few long blocks are worth it: the transport walks each of them with every message,
// where packing walks memory once more. What counts is their length on average, as far as it was measured.
#include "engine/runtime/placement.hpp"

#include <algorithm>

namespace kplan {
namespace {

/// A message that is received in one piece costs the transport no walk, so a shorter one will do.
constexpr std::int64_t shorter_in_one_block = 32;

bool may_be_long_enough(const Message& m, const PlacingLimits& limits) {
  // Transports count blocks and their bytes in ints.
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  return limits.least_bytes > 0 && m.bytes > static_cast<std::int64_t>(limits.least_bytes) / shorter_in_one_block &&
         m.bytes <= most_bytes;
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

/// Adds what one transfer moves; false where it cannot be placed.
bool Placement::add(const Transfer& t, int buffer, std::int64_t element_bytes) {
  std::vector<Piece> runs = split_into_runs(t.piece);
  if (runs.empty()) return add(t.piece, buffer, element_bytes);
  return std::ranges::all_of(runs, [&](Piece& piece) { return add(std::move(piece), buffer, element_bytes); });
}

bool Placement::add(Piece piece, int buffer, std::int64_t element_bytes) {
  // Loops that go backwards are written out: MPI's implementations have their troubles with them.
  constexpr std::int64_t most_offsets = 4096;
  while (std::ranges::any_of(piece.tracks[0].strides, [](std::int64_t stride) { return stride <= 0; })) {
    if (piece.list_length * piece.counts[0] > most_offsets) return false;
    unfold_dimension(piece);
  }
  if (!goes_straight(piece, message_bytes_, element_bytes)) return false;
  const Track& track = piece.tracks[0];
  transport::Blocks blocks{nullptr, track.listed_bases(piece.list_length), piece.counts, track.strides, element_bytes};
  while (!blocks.counts.empty() && blocks.strides_bytes.back() == blocks.block_bytes) {
    blocks.block_bytes *= blocks.counts.back();
    blocks.counts.pop_back();
    blocks.strides_bytes.pop_back();
  }
  message_bytes_ += piece.element_count() * element_bytes;
  // What describes an offset is as long as a few blocks, and is read again with every message.
  constexpr std::int64_t blocks_for_an_offset = 8;
  block_count_ += piece.element_count() * element_bytes / blocks.block_bytes;
  if (piece.list_length > 1) block_count_ += blocks_for_an_offset * piece.list_length;
  buffers_.push_back(buffer);
  blocks_.push_back(std::move(blocks));
  return true;
}

bool Placement::is_worth_it(const Message& m, const PlacingLimits& limits) const {
  if (message_bytes_ != m.bytes) return false;
  if (block_count_ == 1) return true;
  // Half as long a message needs longer blocks.
  constexpr std::int64_t times_as_long = 32;
  const auto least_bytes = static_cast<std::int64_t>(limits.least_bytes),
             least_block_bytes = static_cast<std::int64_t>(limits.least_block_bytes) * block_count_;
  return message_bytes_ >= least_bytes
             ? message_bytes_ >= least_block_bytes
             : 2 * message_bytes_ >= least_bytes && message_bytes_ >= times_as_long * least_block_bytes;
}

std::unique_ptr<Placement> Placement::of_sent(const Statement& statement, const StatementSchedule& s, const Message& m,
                                              const PlacingLimits& limits) {
  if (s.reads_what_it_writes || !may_be_long_enough(m, limits)) return nullptr;
  auto out = std::make_unique<Placement>();
  for (const Transfer& t : m.transfers) {
    const auto k = static_cast<std::size_t>(t.reduction);
    const ValueForm& form = s.values[k];
    if (form.value->kind != ExprKind::element) return nullptr;
    const auto bytes = static_cast<std::int64_t>(statement.reductions[k].value_type.size_bytes);
    if (!out->add(t, form.value->id, bytes)) return nullptr;
  }
  // Shorter ones of one block are sent in place anyway.
  const bool goes_in_place = out->block_count_ == 1 && m.bytes < static_cast<std::int64_t>(limits.least_bytes);
  return !goes_in_place && out->is_worth_it(m, limits) ? std::move(out) : nullptr;
}

std::unique_ptr<Placement> Placement::of_received(const Statement& statement, const StatementSchedule& s,
                                                  const Message& m, const PlacingLimits& limits) {
  if (s.reads_what_it_writes || s.is_in_sender_order || !may_be_long_enough(m, limits)) return nullptr;
  auto out = std::make_unique<Placement>();
  for (const Transfer& t : m.transfers) {
    const Reduction& r = statement.reductions[static_cast<std::size_t>(t.reduction)];
    if (!t.is_assign || !t.is_injective || r.value_type != r.place_type) return nullptr;
    if (!out->add(t, r.place->id, static_cast<std::int64_t>(r.place_type.size_bytes))) return nullptr;
  }
  return out->is_worth_it(m, limits) ? std::move(out) : nullptr;
}

void Placement::tell(transport::Channel& channel, const std::vector<BoundMemory>& memory) {
  for (std::size_t k = 0; k < blocks_.size(); ++k) blocks_[k].base = memory[static_cast<std::size_t>(buffers_[k])].base;
  channel.place(blocks_);
}

}  // namespace kplan
