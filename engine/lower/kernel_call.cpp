// How it works: a part's nest and tracks become a spec's dimensions and streams, its value expression and operator
// become instructions. What matters for speed is literal in the spec, what differs between peers is an argument.
#include "engine/lower/kernel_call.hpp"

#include <algorithm>

#include "engine/lower/kernel_build.hpp"
#include "engine/lower/list_entries.hpp"
#include "engine/lower/loop_order.hpp"

namespace kplan {

int SpecTable::add(jit::KernelSpec spec) {
  const auto [known, is_new] = numbers_.emplace(spec.key(), static_cast<int>(specs_.size()));
  if (is_new) specs_.push_back(std::move(spec));
  return known->second;
}

Lowering::Lowering(const BoundPlan& bound, const StatementSchedule& schedule, SpecTable& specs, Literals literals)
    : bound_(bound),
      statement_(bound.model->statements[static_cast<std::size_t>(schedule.statement)]),
      schedule_(schedule),
      specs_(specs),
      literals_(literals) {
  for (const auto* messages : {&schedule.sends, &schedule.receives, &schedule.local_send, &schedule.local_receive})
    for (const Message& m : *messages) message_bytes_ = std::max(message_bytes_, m.bytes);
}

/// The piece in one of few shapes, so that code for one run of a varying pattern serves the next: one block of elements
/// side by side, a list of such blocks, or a list of elements. `element_bytes`: by track, 0 for numbers.
Piece plain_shape(Piece p, const std::vector<std::int64_t>& element_bytes) {
  constexpr std::int64_t least_block_bytes = 64;
  bool has_blocks = !p.counts.empty();
  for (std::size_t k = 0; k < p.tracks.size() && has_blocks; ++k)
    has_blocks = element_bytes[k] == 0 || (p.tracks[k].strides.back() == element_bytes[k] &&
                                           p.counts.back() * element_bytes[k] >= least_block_bytes);
  while (p.counts.size() > (has_blocks ? 1u : 0u)) unfold_dimension(p);
  return p;
}

/// The piece as its kernel walks it; `is_in_any_order`: the elements of its first track, which `is_written` or read.
const Piece& Lowering::shaped(const Piece& piece, const std::vector<std::int64_t>& element_bytes, bool is_in_any_order,
                              bool is_written) {
  if (literals_ == Literals::innermost) return shaped_ = plain_shape(piece, element_bytes);
  if (!is_in_any_order || piece.list_length > 1) return piece;
  shaped_ = piece;
  return walk_shared_lines_together(shaped_, 1, element_bytes[0], is_written) ? shaped_ : piece;
}

std::int64_t Lowering::extent(int buffer) const {
  return bound_.state.layouts[static_cast<std::size_t>(buffer)].extent;
}

/// In cells where elements are only copied; the first tracks are of so many buffers.
Lowering::Walked Lowering::walked(const MessagePart& part, const ElementType& type, bool is_copy,
                                  std::size_t buffers) const {
  if (!is_copy || literals_ != Literals::shapes || type.is_record()) return {&part, {}, nullptr};
  auto cells = cells_of(part.piece, std::vector(buffers, static_cast<std::int64_t>(type.size_bytes)));
  if (!cells) return {&part, {}, nullptr};
  auto in_cells = std::make_unique<const MessagePart>(
      MessagePart{part.reduction, std::move(cells->piece), part.is_assign, part.is_injective});
  const MessagePart* const walked = in_cells.get();
  return {walked, std::move(cells->distances), std::move(in_cells)};
}

void Lowering::pack(const MessagePart& part, std::vector<KernelCall>& to) {
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(part.reduction)];
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(part.reduction)];
  const Walked whole = walked(part, r.value_type, form.value->kind == ExprKind::element, 1);
  const Piece& piece = whole.part->piece;
  std::vector<ListedTrack> tracks{{&piece.tracks.back(), r.value_type.size_bytes, message_bytes_}};
  for (std::size_t k = 0; k < form.elements.size(); ++k)
    tracks.push_back({&piece.tracks[k], form.elements[k]->element_bytes, extent(form.elements[k]->id)});
  each_section(*whole.part, list_ends(piece, tracks),
               [&](const MessagePart& section) { to.push_back(pack(section, whole.distances)); });
}

void Lowering::unpack(const MessagePart& part, std::vector<KernelCall>& to) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(part.reduction)];
  if (r.is_native && !part.is_assign) return to.push_back(unpack(part, Distances()));
  const bool is_copy = part.is_assign && part.is_injective && r.value_type == r.place_type;
  const Walked whole = walked(part, r.value_type, is_copy, 1);
  const Piece& piece = whole.part->piece;
  const std::vector<ListedTrack> tracks{{&piece.tracks[0], r.place->element_bytes, extent(r.place->id)},
                                        {&piece.tracks[1], r.value_type.size_bytes, message_bytes_}};
  each_section(*whole.part, list_ends(piece, tracks),
               [&](const MessagePart& section) { to.push_back(unpack(section, whole.distances)); });
}

void Lowering::move(const MessagePart& from, const MessagePart& to, std::vector<KernelCall>& calls) {
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(to.reduction)];
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(to.reduction)];
  const bool is_copy =
      to.is_assign && to.is_injective && r.value_type == r.place_type && form.value->kind == ExprKind::element;
  const Walked source = walked(from, r.value_type, is_copy, 2);
  const Piece& piece = source.part->piece;
  std::optional<MessagePart> in_cells;
  if (source.in_cells)
    in_cells = MessagePart{
        to.reduction, {piece.list_length, piece.counts, {piece.tracks.back()}}, to.is_assign, to.is_injective};
  const MessagePart& target = in_cells ? *in_cells : to;
  std::vector<ListedTrack> tracks{{&target.piece.tracks[0], r.place->element_bytes, extent(r.place->id)}};
  // Sources may be another rank's, whose extents are not known here.
  for (std::size_t k = 0; k < form.elements.size(); ++k)
    tracks.push_back({&piece.tracks[k], form.elements[k]->element_bytes, INT64_MAX});
  const std::vector<std::int64_t> ends = list_ends(piece, tracks);
  std::vector<MessagePart> places;
  each_section(target, ends, [&](const MessagePart& section) { places.push_back(section); });
  auto place = places.begin();
  each_section(*source.part, ends,
               [&](const MessagePart& section) { calls.push_back(move(section, *place++, source.distances)); });
}

KernelCall Lowering::pack(const MessagePart& part, const Distances& distances) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(part.reduction)];
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(part.reduction)];
  std::vector<std::int64_t> element_bytes;
  for (const Expr* e : form.elements) element_bytes.push_back(static_cast<std::int64_t>(e->element_bytes));
  element_bytes.resize(part.piece.tracks.size() - 1);
  element_bytes.push_back(static_cast<std::int64_t>(r.value_type.size_bytes));
  const Piece& piece = shaped(part.piece, element_bytes, form.value->kind == ExprKind::element, false);
  Build b(*this, piece);
  b.may_be_cut = &piece == &part.piece;
  b.stream(StreamKind::message, -1, piece.tracks.back(), r.value_type.size_bytes);
  b.add_value_tracks(form, piece);
  if (form.value->kind == ExprKind::element) b.copy(r.value_type, distances, 1);
  else b.spec.outputs.push_back({0, b.value(*form.value, -1)});
  return b.finish("pack", part.reduction, true);
}

KernelCall Lowering::unpack(const MessagePart& part, const Distances& distances) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(part.reduction)];
  if (r.is_native && !part.is_assign) {
    KernelCall call;
    call.is_native = true;
    call.native_buffer = r.place->id;
    call.native = part.piece;
    call.statement = schedule_.statement;
    call.reduction = part.reduction;
    return call;
  }
  const Piece& piece =
      shaped(part.piece,
             {static_cast<std::int64_t>(r.place->element_bytes), static_cast<std::int64_t>(r.value_type.size_bytes)},
             part.is_injective, true);
  Build b(*this, piece);
  b.may_be_cut = &piece == &part.piece;
  b.stream(StreamKind::buffer, r.place->id, piece.tracks[0], r.place->element_bytes);
  b.right_stream = b.stream(StreamKind::message, -1, piece.tracks[1], r.value_type.size_bytes);
  b.value_scalar = r.value_type.scalar;
  if (part.is_assign && r.value_type == r.place_type) b.copy(r.place_type, distances, 0);
  else b.add_updates(r, part.is_assign);
  return b.finish("unpack", part.reduction, part.is_injective);
}

KernelCall Lowering::move(const MessagePart& from, const MessagePart& to, const Distances& distances) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(to.reduction)];
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(to.reduction)];
  Build b(*this, from.piece);
  b.may_be_cut = false;
  b.stream(StreamKind::buffer, r.place->id, to.piece.tracks[0], r.place->element_bytes);
  b.add_value_tracks(form, from.piece);
  if (to.is_assign && r.value_type == r.place_type && form.value->kind == ExprKind::element) {
    b.copy(r.place_type, distances, 1);
  } else {
    b.place_type = &r.place_type;
    if (r.place_type.is_record()) b.right_stream = b.element_streams.at(form.value.get());
    else b.right_instruction = b.convert(b.value(*form.value, -1), r.place_type.scalar);
    b.add_updates(r, to.is_assign);
  }
  return b.finish("move", to.reduction, to.is_injective);
}

std::optional<KernelCall> Lowering::merge(const MetShares& shares, bool is_own_first) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(shares.to.reduction)];
  const MessagePart& second = is_own_first ? shares.arrived : shares.to;
  if (r.place_type.is_record() || r.value_type.is_record() || r.is_native || second.is_assign) return std::nullopt;
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(shares.to.reduction)];
  Build b(*this, shares.from.piece);
  b.place_type = &r.place_type;
  b.stream(StreamKind::buffer, r.place->id, shares.to.piece.tracks[0], r.place->element_bytes);
  b.add_value_tracks(form, shares.from.piece);
  const int message = b.stream(StreamKind::message, -1, shares.arrived.piece.tracks[1], r.value_type.size_bytes);
  const auto add = [&](bool is_own, bool is_assign) {
    const int given = is_own ? b.value(*form.value, -1) : b.load(message, r.value_type.scalar, 0);
    b.right_instruction = b.convert(given, r.place_type.scalar);
    b.left_instruction = is_assign ? b.right_instruction : b.value(*r.updates[0].result, -1);
  };
  add(is_own_first, is_own_first ? shares.to.is_assign : shares.arrived.is_assign);
  add(!is_own_first, false);
  const auto may_fail = [](const jit::Instruction& i) {
    return i.opcode == jit::Opcode::apply && divides(i.operation) && is_integer(i.type);
  };
  if (std::ranges::any_of(b.spec.instructions, may_fail)) return std::nullopt;
  b.spec.outputs.push_back({0, b.left_instruction});
  return b.finish("merge", shares.to.reduction, true);
}

}  // namespace kplan
