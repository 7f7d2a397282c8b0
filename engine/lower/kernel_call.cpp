// How it works: a transfer's nest and tracks become a spec's dimensions and streams, its value expression and operator
// become instructions. What matters for speed is literal in the spec, what differs between peers is an argument.
#include "engine/lower/kernel_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/lower/list_entries.hpp"
#include "engine/lower/loop_order.hpp"

namespace kplan {
namespace {

using jit::at_run_time;
using jit::Instruction;
using jit::KernelSpec;
using jit::Opcode;

/// Extents up to here are literal: short loops are unrolled, longer ones gain nothing.
constexpr std::int64_t longest_literal_run_bytes = 1024, longest_literal_extent = 8;
/// Outer ones only of small nests: long messages are cut into pieces, at loops whose extents are arguments.
constexpr std::int64_t largest_literal_nest_bytes = 16384;

std::string identifier(const std::string& text) {
  std::string out;
  for (const char c : text) out += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  return out.substr(0, 80);
}

}  // namespace

int SpecTable::add(KernelSpec spec) {
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
  for (std::size_t t = 0; t < p.tracks.size() && has_blocks; ++t)
    has_blocks = element_bytes[t] == 0 || (p.tracks[t].strides.back() == element_bytes[t] &&
                                           p.counts.back() * element_bytes[t] >= least_block_bytes);
  while (p.counts.size() > (has_blocks ? 1u : 0u)) unfold_dimension(p);
  return p;
}

/// One kernel being made.
struct Lowering::Build {
  const Lowering& lowering;
  const Piece& nest;  ///< gives dimensions and list
  KernelSpec spec;
  KernelCall call;
  std::map<const Expr*, int> element_streams;                 ///< of the value's elements
  std::map<std::pair<int, int>, const Track*> number_tracks;  ///< by number and word
  std::map<int, int> parameter_slots;
  const ElementType* place_type = nullptr;
  int right_stream = -1;       ///< unpack: where the value comes from, as an element of value_type
  int right_instruction = -1;  ///< move: the value itself
  Scalar value_scalar = Scalar::f64;
  std::vector<std::vector<std::int64_t>> strides_bytes;  ///< by stream

  Build(const Lowering& l, const Piece& n) : lowering(l), nest(n) {
    call.list_length = nest.list_length;
    call.extents = nest.counts;
  }

  bool is_literal_stride(std::size_t d, std::size_t dimensions) const {
    return lowering.literals_ == Literals::shapes || (lowering.literals_ == Literals::innermost && d + 1 == dimensions);
  }

  /// `unit`: what divides the distances between the track's bases.
  int stream(StreamKind kind, int buffer, const Track& track, std::size_t unit) {
    StreamUse use;
    use.kind = kind;
    use.buffer = buffer;
    jit::Stream s;
    // A step is constant in the code: where the pattern varies, only a message's is relied on.
    s.is_indexed = track.is_listed() || (lowering.literals_ == Literals::innermost && nest.list_length > 1 &&
                                         !(kind == StreamKind::message && nest.counts.empty()));
    if (s.is_indexed) {
      use.offset_bytes = std::min(track.base(0), track.base(nest.list_length - 1));
      if (track.is_listed()) use.offset_bytes = std::ranges::min(track.bases);
      s.list_scale_bytes = static_cast<std::int64_t>(unit);
      use.list = entries_of(track, nest.list_length, use.offset_bytes, s.list_scale_bytes);
    } else {
      use.offset_bytes = track.bases[0];
      s.list_stride_bytes = track.step;
    }
    for (std::size_t d = 0; d < track.strides.size(); ++d)
      s.strides_bytes.push_back(is_literal_stride(d, track.strides.size()) ? track.strides[d] : at_run_time);
    strides_bytes.push_back(track.strides);
    call.streams.push_back(std::move(use));
    spec.streams.push_back(std::move(s));
    return static_cast<int>(spec.streams.size()) - 1;
  }

  int emit(Instruction i) {
    const auto known = i.opcode == Opcode::load ? std::ranges::find(spec.instructions, i) : spec.instructions.end();
    if (known != spec.instructions.end()) return static_cast<int>(known - spec.instructions.begin());
    spec.instructions.push_back(std::move(i));
    return static_cast<int>(spec.instructions.size()) - 1;
  }

  int load(int from, Scalar type, std::size_t offset_bytes) {
    Instruction i;
    i.opcode = Opcode::load;
    i.type = type;
    i.stream = from;
    i.offset_bytes = static_cast<std::int64_t>(offset_bytes);
    return emit(std::move(i));
  }

  int constant(const ScalarValue& v) {
    Instruction i;
    i.opcode = Opcode::constant;
    i.type = v.type;
    i.bits[0] = v.bits[0];
    i.bits[1] = v.bits[1];
    return emit(std::move(i));
  }

  int apply(Operation op, Scalar type, int a, int b = -1, int c = -1, int guard = -1) {
    Instruction i;
    i.opcode = Opcode::apply;
    i.operation = op;
    i.type = type;
    i.a = a;
    i.b = b;
    i.c = c;
    if (divides(op) && is_integer(type)) i.guard = guard;
    return emit(std::move(i));
  }

  int convert(int value, Scalar to) {
    return spec.instructions[static_cast<std::size_t>(value)].type == to ? value : apply(Operation::convert, to, value);
  }

  int new_slot(const ScalarValue& v) {
    call.scalars.push_back(v.bits[0]);
    call.scalars.push_back(v.bits[1]);
    return static_cast<int>(call.scalars.size() / 2) - 1;
  }

  int parameter(int id) {
    const Parameter& p = lowering.bound_.model->parameters[static_cast<std::size_t>(id)];
    const ScalarValue& v = lowering.bound_.state.parameters[static_cast<std::size_t>(id)];
    if (!p.is_varying && p.is_uniform) return constant(v);
    const auto [it, is_new] = parameter_slots.emplace(id, 0);
    if (is_new) {
      it->second = new_slot(v);
      if (p.is_varying) call.varying_scalars.emplace_back(it->second, id);
    }
    Instruction i;
    i.opcode = Opcode::scalar;
    i.type = p.type;
    i.slot = it->second;
    return emit(std::move(i));
  }

  /// A where-bound number: a base, from the list or as a scalar, and strides over the nest.
  int number(int n, Scalar type) {
    const Track& track = *number_tracks.at({n, 0});
    if (lowering.literals_ == Literals::innermost || !(is_integer(type) || type == Scalar::boolean))
      return tabulated(n, type);
    const bool is_listed = track.is_listed() || track.step != 0;
    Instruction i;
    i.opcode = Opcode::position;
    i.type = Scalar::i64;
    i.slot = new_slot(ScalarValue::integer(is_listed ? 0 : track.bases[0]));
    i.position_strides = track.strides;
    const int position = emit(std::move(i));
    if (!is_listed) return convert(position, type);
    Track table{{}, std::vector<std::int64_t>(nest.counts.size(), 0)};
    table.bases = {0};
    table.step = 8;
    const int from = stream(StreamKind::table, -1, table, 8);
    call.streams.back().table = track.listed_bases(nest.list_length);
    return convert(apply(Operation::add, Scalar::i64, load(from, Scalar::i64, 0), position), type);
  }

  /// A where-bound value of any type, written out for every iteration.
  int tabulated(int n, Scalar type) {
    const std::int64_t words = type == Scalar::c128 ? 2 : 1;
    Track table{{}, std::vector<std::int64_t>(nest.counts.size(), 0)};
    std::int64_t block = 8 * words;
    for (std::size_t d = nest.counts.size(); d-- > 0; block *= nest.counts[d]) table.strides[d] = block;
    table.bases = {0};
    if (nest.list_length > 1) table.step = block;
    const int from = stream(StreamKind::table, -1, table, 8);
    auto& memory = call.streams.back().table;
    memory.resize(static_cast<std::size_t>(nest.element_count() * words));
    for (std::int64_t w = 0; w < words; ++w) {
      auto at = static_cast<std::size_t>(w);
      walk(nest, *number_tracks.at({n, static_cast<int>(w)}), [&](std::int64_t word) {
        memory[at] = word;
        at += static_cast<std::size_t>(words);
        return true;
      });
    }
    const bool is_integral = is_integer(type) || type == Scalar::boolean;
    return is_integral ? convert(load(from, Scalar::i64, 0), type) : load(from, type, 0);
  }

  int both(int guard, int condition) {
    return guard < 0 ? condition : apply(Operation::bit_and, Scalar::boolean, guard, condition);
  }

  int value(const Expr& e, int guard) {
    switch (e.kind) {
      case ExprKind::constant: return constant(e.value);
      case ExprKind::size: return constant(ScalarValue::integer(lowering.schedule_.size));
      case ExprKind::parameter: return parameter(e.id);
      case ExprKind::rank: return number(0, e.type);
      case ExprKind::variable: return number(e.id + 1, e.type);
      case ExprKind::element: return load(element_streams.at(&e), e.type, 0);
      case ExprKind::left: return load(0, e.type, field_offset(e));
      case ExprKind::right:
        return right_instruction >= 0
                   ? right_instruction
                   : convert(load(right_stream, place_type->is_record() ? e.type : value_scalar, field_offset(e)),
                             e.type);
      case ExprKind::logical_and: {
        const int a = value(*e.operands[0], guard);
        return apply(Operation::bit_and, Scalar::boolean, a, value(*e.operands[1], both(guard, a)));
      }
      case ExprKind::logical_or: {
        const int a = value(*e.operands[0], guard);
        const int not_a = apply(Operation::logical_not, Scalar::boolean, a);
        return apply(Operation::bit_or, Scalar::boolean, a, value(*e.operands[1], both(guard, not_a)));
      }
      case ExprKind::conditional: {
        const int c = value(*e.operands[0], guard);
        const int a = value(*e.operands[1], both(guard, c));
        const int not_c = apply(Operation::logical_not, Scalar::boolean, c);
        const int b = value(*e.operands[2], both(guard, not_c));
        return apply(Operation::select, e.type, c, a, b);
      }
      case ExprKind::operation: {
        int operands[3] = {-1, -1, -1};
        for (std::size_t k = 0; k < e.operands.size(); ++k) operands[k] = value(*e.operands[k], guard);
        return apply(e.operation, e.type, operands[0], operands[1], operands[2], guard);
      }
      default: throw InternalError("KP-I020", "an expression cannot be lowered");
    }
  }

  std::size_t field_offset(const Expr& e) const {
    return e.field < 0 ? 0 : place_type->fields[static_cast<std::size_t>(e.field)].offset_bytes;
  }

  /// The streams and numbers of a value's tracks.
  void add_value_tracks(const ValueForm& form, const Piece& piece) {
    for (std::size_t k = 0; k < form.elements.size(); ++k)
      element_streams[form.elements[k]] =
          stream(StreamKind::buffer, form.elements[k]->id, piece.tracks[k], form.elements[k]->element_bytes);
    for (std::size_t k = 0; k < form.numbers.size(); ++k)
      number_tracks[{form.numbers[k].number, form.numbers[k].word}] = &piece.tracks[form.elements.size() + k];
  }

  /// The operator, with the value as `right`, as outputs to stream 0.
  void add_updates(const Reduction& r, bool is_assign) {
    place_type = &r.place_type;
    if (is_assign) {  // of a scalar; records are copied
      const int right = right_instruction >= 0 ? right_instruction
                                               : convert(load(right_stream, value_scalar, 0), r.place_type.scalar);
      spec.outputs.push_back({0, convert(right, r.place_type.scalar)});
      return;
    }
    for (const Update& u : r.updates) {
      const std::size_t offset = u.field < 0 ? 0 : r.place_type.fields[static_cast<std::size_t>(u.field)].offset_bytes;
      spec.outputs.push_back({static_cast<std::int64_t>(offset), value(*u.result, -1)});
    }
  }

  KernelCall finish(const char* kind, int reduction, bool is_injective) {
    call.reduction = reduction;
    if (is_block_copy()) {
      call.spec = -1;
      call.copy_bytes = spec.copy_bytes * nest.block_elements();
      return std::move(call);
    }
    spec.is_injective = is_injective;
    if (nest.list_length > 1 && !spec.has_lists()) add_list_dimension();
    for (const auto& strides : strides_bytes)
      call.strides_bytes.insert(call.strides_bytes.end(), strides.begin(), strides.end());
    const std::int64_t element_bytes = nest.tracks.empty() || nest.counts.empty()
                                           ? 8
                                           : std::max<std::int64_t>(1, std::abs(nest.tracks.back().strides.back()));
    for (std::size_t d = 0; d < nest.counts.size(); ++d) {
      const bool is_innermost = d + 1 == nest.counts.size();
      const std::int64_t element =
          std::max<std::int64_t>(1, std::abs(nest.tracks.empty() ? 8 : nest.tracks.back().strides[d]));
      const bool is_short = is_innermost ? nest.counts[d] * element <= longest_literal_run_bytes
                                         : nest.counts[d] <= longest_literal_extent &&
                                               nest.element_count() * element_bytes <= largest_literal_nest_bytes;
      spec.extents.push_back(is_short && lowering.literals_ != Literals::innermost ? nest.counts[d] : at_run_time);
    }
    spec.name =
        identifier(fmt::format("{}_{}_{}{}", lowering.bound_.model->name, lowering.statement_.name, kind, reduction));
    call.spec = lowering.specs_.add(std::move(spec));
    return std::move(call);
  }

  /// No stream needs its list: the list is a dimension like any other.
  void add_list_dimension() {
    for (std::size_t k = 0; k < spec.streams.size(); ++k) {
      jit::Stream& s = spec.streams[k];
      s.strides_bytes.insert(s.strides_bytes.begin(),
                             lowering.literals_ == Literals::shapes ? s.list_stride_bytes : at_run_time);
      strides_bytes[k].insert(strides_bytes[k].begin(), s.list_stride_bytes);
      s.list_stride_bytes = 0;
    }
    for (Instruction& i : spec.instructions)
      if (i.opcode == Opcode::position) i.position_strides.insert(i.position_strides.begin(), 0);
    spec.extents.push_back(at_run_time);
    call.extents.insert(call.extents.begin(), nest.list_length);
    call.list_length = 1;
  }

  /// One run of bytes from one place to another.
  bool is_block_copy() const {
    if (spec.copy_bytes == 0 || nest.list_length != 1 || nest.counts.size() > 1) return false;
    const std::size_t dims = nest.counts.size();
    return dims == 0 || (strides_bytes[0][0] == spec.copy_bytes && strides_bytes[1][0] == spec.copy_bytes);
  }
};

/// The piece as its kernel walks it; `is_in_any_order`: the elements of its first track.
const Piece& Lowering::shaped(const Piece& piece, const std::vector<std::int64_t>& element_bytes,
                              bool is_in_any_order) {
  if (literals_ == Literals::innermost) return shaped_ = plain_shape(piece, element_bytes);
  if (!is_in_any_order || piece.list_length > 1) return piece;
  shaped_ = piece;
  walk_shared_lines_together(shaped_, 1, element_bytes[0]);
  return shaped_;
}

std::int64_t Lowering::extent(int buffer) const {
  return bound_.state.layouts[static_cast<std::size_t>(buffer)].extent;
}

void Lowering::pack(const Transfer& t, std::vector<KernelCall>& to) {
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(t.reduction)];
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(t.reduction)];
  std::vector<ListedTrack> tracks{{&t.piece.tracks.back(), r.value_type.size_bytes, message_bytes_}};
  for (std::size_t k = 0; k < form.elements.size(); ++k)
    tracks.push_back({&t.piece.tracks[k], form.elements[k]->element_bytes, extent(form.elements[k]->id)});
  each_part(t, list_ends(t.piece, tracks), [&](const Transfer& part) { to.push_back(pack(part)); });
}

void Lowering::unpack(const Transfer& t, std::vector<KernelCall>& to) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(t.reduction)];
  if (r.is_native && !t.is_assign) return to.push_back(unpack(t));
  const std::vector<ListedTrack> tracks{{&t.piece.tracks[0], r.place->element_bytes, extent(r.place->id)},
                                        {&t.piece.tracks[1], r.value_type.size_bytes, message_bytes_}};
  each_part(t, list_ends(t.piece, tracks), [&](const Transfer& part) { to.push_back(unpack(part)); });
}

void Lowering::move(const Transfer& from, const Transfer& to, std::vector<KernelCall>& calls) {
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(to.reduction)];
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(to.reduction)];
  std::vector<ListedTrack> tracks{{&to.piece.tracks[0], r.place->element_bytes, extent(r.place->id)}};
  for (std::size_t k = 0; k < form.elements.size(); ++k)
    tracks.push_back({&from.piece.tracks[k], form.elements[k]->element_bytes, extent(form.elements[k]->id)});
  const std::vector<std::int64_t> ends = list_ends(from.piece, tracks);
  std::vector<Transfer> places;
  each_part(to, ends, [&](const Transfer& part) { places.push_back(part); });
  auto place = places.begin();
  each_part(from, ends, [&](const Transfer& part) { calls.push_back(move(part, *place++)); });
}

KernelCall Lowering::pack(const Transfer& t) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(t.reduction)];
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(t.reduction)];
  std::vector<std::int64_t> element_bytes;
  for (const Expr* e : form.elements) element_bytes.push_back(static_cast<std::int64_t>(e->element_bytes));
  element_bytes.resize(t.piece.tracks.size() - 1);
  element_bytes.push_back(static_cast<std::int64_t>(r.value_type.size_bytes));
  const Piece& piece = shaped(t.piece, element_bytes, form.value->kind == ExprKind::element);
  Build b(*this, piece);
  b.stream(StreamKind::message, -1, piece.tracks.back(), r.value_type.size_bytes);
  b.add_value_tracks(form, piece);
  if (form.value->kind == ExprKind::element) b.spec.copy_bytes = static_cast<std::int64_t>(r.value_type.size_bytes);
  else b.spec.outputs.push_back({0, b.value(*form.value, -1)});
  return b.finish("pack", t.reduction, true);
}

KernelCall Lowering::unpack(const Transfer& t) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(t.reduction)];
  if (r.is_native && !t.is_assign) {
    KernelCall call;
    call.is_native = true;
    call.native_buffer = r.place->id;
    call.native = t.piece;
    call.reduction = t.reduction;
    return call;
  }
  const Piece& piece = shaped(
      t.piece, {static_cast<std::int64_t>(r.place->element_bytes), static_cast<std::int64_t>(r.value_type.size_bytes)},
      t.is_injective);
  Build b(*this, piece);
  b.stream(StreamKind::buffer, r.place->id, piece.tracks[0], r.place->element_bytes);
  b.right_stream = b.stream(StreamKind::message, -1, piece.tracks[1], r.value_type.size_bytes);
  b.value_scalar = r.value_type.scalar;
  if (t.is_assign && r.value_type == r.place_type)
    b.spec.copy_bytes = static_cast<std::int64_t>(r.place_type.size_bytes);
  else b.add_updates(r, t.is_assign);
  return b.finish("unpack", t.reduction, t.is_injective);
}

KernelCall Lowering::move(const Transfer& from, const Transfer& to) {
  const Reduction& r = statement_.reductions[static_cast<std::size_t>(to.reduction)];
  const ValueForm& form = schedule_.values[static_cast<std::size_t>(to.reduction)];
  Build b(*this, from.piece);
  b.stream(StreamKind::buffer, r.place->id, to.piece.tracks[0], r.place->element_bytes);
  b.add_value_tracks(form, from.piece);
  if (to.is_assign && r.value_type == r.place_type && form.value->kind == ExprKind::element) {
    b.spec.copy_bytes = static_cast<std::int64_t>(r.place_type.size_bytes);
  } else {
    b.place_type = &r.place_type;
    if (r.place_type.is_record()) b.right_stream = b.element_streams.at(form.value.get());
    else b.right_instruction = b.convert(b.value(*form.value, -1), r.place_type.scalar);
    b.add_updates(r, to.is_assign);
  }
  return b.finish("move", to.reduction, to.is_injective);
}

}  // namespace kplan
