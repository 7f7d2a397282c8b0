#include "engine/lower/kernel_build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/lower/list_entries.hpp"

namespace kplan {
namespace {

using jit::at_run_time;
using jit::Instruction;
using jit::KernelSpec;
using jit::Opcode;

/// Extents up to here are literal: short loops are unrolled, longer ones gain nothing.
constexpr std::int64_t longest_literal_run_bytes = 1024, longest_literal_extent = 8;
/// Outer ones not of long messages that are cut into pieces, at loops whose extents are arguments.
constexpr std::int64_t largest_literal_nest_bytes = 16384;

/// A type as long, to be moved as it is.
Scalar whole_bits(std::size_t bytes) {
  switch (bytes) {
    case 1: return Scalar::u8;
    case 2: return Scalar::u16;
    case 4: return Scalar::u32;
    case 8: return Scalar::u64;
    default: return Scalar::c128;
  }
}

std::string identifier(const std::string& text) {
  std::string out;
  for (const char c : text) out += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  return out.substr(0, 80);
}

}  // namespace

Lowering::Build::Build(const Lowering& l, const Piece& n) : lowering(l), nest(n) {
  call.list_length = nest.list_length;
  call.extents = nest.counts;
}

bool Lowering::Build::is_literal_stride(const Track& track, std::size_t d, std::size_t unit) const {
  const bool is_innermost = d + 1 == track.strides.size();
  switch (lowering.literals_) {
    case Literals::shapes: return true;
    case Literals::extents: return is_innermost && std::cmp_equal(track.strides[d], unit);
    case Literals::innermost: return is_innermost;
  }
  return false;
}

int Lowering::Build::stream(StreamKind kind, int buffer, const Track& track, std::size_t unit) {
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
    s.strides_bytes.push_back(is_literal_stride(track, d, unit) ? track.strides[d] : at_run_time);
  strides_bytes_.push_back(track.strides);
  call.streams.push_back(std::move(use));
  spec.streams.push_back(std::move(s));
  return static_cast<int>(spec.streams.size()) - 1;
}

int Lowering::Build::emit(Instruction i) {
  const auto known = i.opcode == Opcode::load ? std::ranges::find(spec.instructions, i) : spec.instructions.end();
  if (known != spec.instructions.end()) return static_cast<int>(known - spec.instructions.begin());
  spec.instructions.push_back(std::move(i));
  return static_cast<int>(spec.instructions.size()) - 1;
}

int Lowering::Build::load(int from, Scalar type, std::size_t offset_bytes) {
  Instruction i;
  i.opcode = Opcode::load;
  i.type = type;
  i.stream = from;
  i.offset_bytes = static_cast<std::int64_t>(offset_bytes);
  return emit(std::move(i));
}

int Lowering::Build::constant(const ScalarValue& v) {
  Instruction i;
  i.opcode = Opcode::constant;
  i.type = v.type;
  i.bits[0] = v.bits[0];
  i.bits[1] = v.bits[1];
  return emit(std::move(i));
}

int Lowering::Build::apply(Operation op, Scalar type, int a, int b, int c, int guard) {
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

int Lowering::Build::convert(int value, Scalar to) {
  return spec.instructions[static_cast<std::size_t>(value)].type == to ? value : apply(Operation::convert, to, value);
}

int Lowering::Build::new_slot(const ScalarValue& v) {
  call.scalars.push_back(v.bits[0]);
  call.scalars.push_back(v.bits[1]);
  return static_cast<int>(call.scalars.size() / 2) - 1;
}

int Lowering::Build::parameter(int id) {
  const Parameter& p = lowering.bound_.model->parameters[static_cast<std::size_t>(id)];
  const ScalarValue& v = lowering.bound_.state.parameters[static_cast<std::size_t>(id)];
  if (!p.is_varying && p.is_uniform) return constant(v);
  const auto [it, is_new] = parameter_slots_.emplace(id, 0);
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

int Lowering::Build::number(int n, Scalar type) {
  const Track& track = *number_tracks_.at({n, 0});
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

int Lowering::Build::tabulated(int n, Scalar type) {
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
    walk(nest, *number_tracks_.at({n, static_cast<int>(w)}), [&](std::int64_t word) {
      memory[at] = word;
      at += static_cast<std::size_t>(words);
      return true;
    });
  }
  const bool is_integral = is_integer(type) || type == Scalar::boolean;
  return is_integral ? convert(load(from, Scalar::i64, 0), type) : load(from, type, 0);
}

int Lowering::Build::both(int guard, int condition) {
  return guard < 0 ? condition : apply(Operation::bit_and, Scalar::boolean, guard, condition);
}

int Lowering::Build::value(const Expr& e, int guard) {
  switch (e.kind) {
    case ExprKind::constant: return constant(e.value);
    case ExprKind::size: return constant(ScalarValue::integer(lowering.schedule_.size));
    case ExprKind::parameter: return parameter(e.id);
    case ExprKind::rank: return number(0, e.type);
    case ExprKind::variable: return number(e.id + 1, e.type);
    case ExprKind::element: return load(element_streams.at(&e), e.type, 0);
    case ExprKind::left: return left_instruction >= 0 ? left_instruction : load(0, e.type, field_offset(e));
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
      if (e.operation == Operation::shr && e.is_index)  // of a binding; counts of values go by their low bits
        operands[1] = apply(Operation::min, Scalar::i64, operands[1], constant(ScalarValue::integer(63)));
      return apply(e.operation, e.type, operands[0], operands[1], operands[2], guard);
    }
    default: throw InternalError("KP-I020", "an expression cannot be lowered");
  }
}

std::size_t Lowering::Build::field_offset(const Expr& e) const {
  return e.field < 0 ? 0 : place_type->fields[static_cast<std::size_t>(e.field)].offset_bytes;
}

void Lowering::Build::add_value_tracks(const ValueForm& form, const Piece& piece) {
  for (std::size_t k = 0; k < form.elements.size(); ++k)
    element_streams[form.elements[k]] =
        stream(StreamKind::buffer, form.elements[k]->id, piece.tracks[k], form.elements[k]->element_bytes);
  for (std::size_t k = 0; k < form.numbers.size(); ++k)
    number_tracks_[{form.numbers[k].number, form.numbers[k].word}] = &piece.tracks[form.elements.size() + k];
}

void Lowering::Build::copy(const ElementType& type, const Distances& distances, std::size_t target) {
  if (distances.empty()) {
    spec.copy_bytes = static_cast<std::int64_t>(type.size_bytes);
    return;
  }
  const Words &to = distances[target], &from = distances[1 - target];
  for (std::size_t c = 0; c < to.size(); ++c)
    spec.outputs.push_back({to[c], load(1, whole_bits(type.size_bytes), static_cast<std::size_t>(from[c]))});
}

void Lowering::Build::add_updates(const Reduction& r, bool is_assign) {
  place_type = &r.place_type;
  if (is_assign) {  // of a scalar; records are copied
    const int right =
        right_instruction >= 0 ? right_instruction : convert(load(right_stream, value_scalar, 0), r.place_type.scalar);
    spec.outputs.push_back({0, convert(right, r.place_type.scalar)});
    return;
  }
  for (const Update& u : r.updates) {
    const std::size_t offset = u.field < 0 ? 0 : r.place_type.fields[static_cast<std::size_t>(u.field)].offset_bytes;
    spec.outputs.push_back({static_cast<std::int64_t>(offset), value(*u.result, -1)});
  }
}

KernelCall Lowering::Build::finish(const char* kind, int reduction, bool is_injective) {
  call.statement = lowering.schedule_.statement;
  call.reduction = reduction;
  if (is_block_copy()) {
    call.spec = -1;
    call.copy_bytes = spec.copy_bytes * nest.block_elements();
    return std::move(call);
  }
  spec.is_injective = is_injective;
  if (nest.list_length > 1 && !spec.has_lists()) add_list_dimension();
  for (const auto& strides : strides_bytes_)
    call.strides_bytes.insert(call.strides_bytes.end(), strides.begin(), strides.end());
  const std::int64_t element_bytes = nest.tracks.empty() || nest.counts.empty()
                                         ? 8
                                         : std::max<std::int64_t>(1, std::abs(nest.tracks.back().strides.back()));
  const bool is_cut = may_be_cut && nest.element_count() * element_bytes > largest_literal_nest_bytes;
  for (std::size_t d = 0; d < nest.counts.size(); ++d) {
    const bool is_innermost = d + 1 == nest.counts.size();
    const std::int64_t element =
        std::max<std::int64_t>(1, std::abs(nest.tracks.empty() ? 8 : nest.tracks.back().strides[d]));
    const bool is_short = nest.counts[d] <= longest_literal_extent
                              ? is_innermost || !is_cut
                              : is_innermost && nest.counts[d] * element <= longest_literal_run_bytes;
    spec.extents.push_back(is_short && lowering.literals_ != Literals::innermost ? nest.counts[d] : at_run_time);
  }
  spec.name =
      identifier(fmt::format("{}_{}_{}{}", lowering.bound_.model->name, lowering.statement_.name, kind, reduction));
  call.spec = lowering.specs_.add(std::move(spec));
  return std::move(call);
}

void Lowering::Build::add_list_dimension() {
  for (std::size_t k = 0; k < spec.streams.size(); ++k) {
    jit::Stream& s = spec.streams[k];
    s.strides_bytes.insert(s.strides_bytes.begin(),
                           lowering.literals_ == Literals::shapes ? s.list_stride_bytes : at_run_time);
    strides_bytes_[k].insert(strides_bytes_[k].begin(), s.list_stride_bytes);
    s.list_stride_bytes = 0;
  }
  for (Instruction& i : spec.instructions)
    if (i.opcode == Opcode::position) i.position_strides.insert(i.position_strides.begin(), 0);
  spec.extents.push_back(at_run_time);
  call.extents.insert(call.extents.begin(), nest.list_length);
  call.list_length = 1;
}

bool Lowering::Build::is_block_copy() const {
  if (spec.copy_bytes == 0 || nest.list_length != 1 || nest.counts.size() > 1) return false;
  const std::size_t dims = nest.counts.size();
  return dims == 0 || (strides_bytes_[0][0] == spec.copy_bytes && strides_bytes_[1][0] == spec.copy_bytes);
}

}  // namespace kplan
