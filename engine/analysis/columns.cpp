#include "engine/analysis/columns.hpp"

#include <algorithm>
#include <cstring>

#include "engine/analysis/pieces.hpp"

namespace kplan {
namespace {

using Column = std::vector<std::int64_t>;

bool is_constant(const ExprPtr& e, std::int64_t value) {
  return !e || (e->kind == ExprKind::constant && e->value.as_integer() == value);
}

template <class T>
void load_all(const std::byte* contents, std::size_t element_bytes, Column& offsets) {
  for (std::int64_t& at : offsets) {
    T value;
    std::memcpy(&value, contents + static_cast<std::size_t>(at) * element_bytes, sizeof value);
    at = static_cast<std::int64_t>(value);
  }
}

bool load_integers(Scalar type, const std::byte* contents, std::size_t element_bytes, Column& offsets) {
  switch (type) {
    case Scalar::i8: load_all<std::int8_t>(contents, element_bytes, offsets); return true;
    case Scalar::i16: load_all<std::int16_t>(contents, element_bytes, offsets); return true;
    case Scalar::i32: load_all<std::int32_t>(contents, element_bytes, offsets); return true;
    case Scalar::i64:
    case Scalar::u64: load_all<std::int64_t>(contents, element_bytes, offsets); return true;
    case Scalar::u8: load_all<std::uint8_t>(contents, element_bytes, offsets); return true;
    case Scalar::u16: load_all<std::uint16_t>(contents, element_bytes, offsets); return true;
    case Scalar::u32: load_all<std::uint32_t>(contents, element_bytes, offsets); return true;
    default: return false;
  }
}

/// out = f(out, b) without overflow; false where one overflows.
template <class F>
bool combine(Column& out, const Column& b, const F& overflows) {
  bool is_wrong = false;
  for (std::size_t k = 0; k < out.size(); ++k) is_wrong |= overflows(out[k], b[k], &out[k]);
  return !is_wrong;
}

template <class F>
void map(Column& out, const Column& b, const F& f) {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = f(out[k], b[k]);
}

bool divide(Column& out, const Column& b, bool wants_remainder) {
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (b[k] <= 0) return false;
    std::int64_t quotient = out[k] / b[k], remainder = out[k] % b[k];
    if (remainder < 0) remainder += b[k], --quotient;
    out[k] = wants_remainder ? remainder : quotient;
  }
  return true;
}

template <class T>
void wrap_all(Column& values) {
  for (std::int64_t& v : values) v = static_cast<std::int64_t>(static_cast<T>(v));
}

/// Makes integers what they are in that type; false where it has none.
bool wrap(Scalar type, Column& values) {
  switch (type) {
    case Scalar::i8: wrap_all<std::int8_t>(values); return true;
    case Scalar::i16: wrap_all<std::int16_t>(values); return true;
    case Scalar::i32: wrap_all<std::int32_t>(values); return true;
    case Scalar::i64:
    case Scalar::u64: return true;
    case Scalar::u8: wrap_all<std::uint8_t>(values); return true;
    case Scalar::u16: wrap_all<std::uint16_t>(values); return true;
    case Scalar::u32: wrap_all<std::uint32_t>(values); return true;
    default: return false;
  }
}

/// offsets += index * stride; false where an index is outside the extent.
bool add_offsets(const Column& index, std::int64_t extent, std::int64_t stride, Column& offsets) {
  bool is_outside = false;
  for (std::size_t k = 0; k < index.size(); ++k) {
    is_outside |= static_cast<std::uint64_t>(index[k]) >= static_cast<std::uint64_t>(extent);
    offsets[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(offsets[k]) +
                                           static_cast<std::uint64_t>(index[k]) * static_cast<std::uint64_t>(stride));
  }
  return !is_outside;
}

}  // namespace

void Block::clear(std::size_t variables) {
  count = 0;
  for (auto* columns : {&words, &second, &positions}) {
    columns->resize(variables);
    for (auto& column : *columns) column.clear();
  }
}

ColumnEvaluator::Scratch::Scratch(ColumnEvaluator& owner)
    : owner_(owner),
      column_(owner.used_ < owner.scratch_.size() ? owner.scratch_[owner.used_] : owner.scratch_.emplace_back()) {
  ++owner.used_;
}

ColumnEvaluator::ColumnEvaluator(const Statement& s, const RankState& state)
    : s_(s), state_(state), variables_(s.variables.size()) {}

EvaluationContext ColumnEvaluator::context_at(const Block& block, std::size_t row) {
  for (std::size_t v = 0; v < variables_.size(); ++v)
    if (row < block.words[v].size())
      variables_[v] =
          value_of_words(s_.variables[v].type, block.words[v][row], block.second[v].empty() ? 0 : block.second[v][row]);
  return {.state = &state_, .variables = variables_.data()};
}

ScalarValue ColumnEvaluator::evaluate_at(const Expr& e, const Block& block, std::size_t row) {
  try {
    return evaluate(e, context_at(block, row));
  } catch (const EvaluationFault& f) {
    throw BlockFault{f, row};
  }
}

void ColumnEvaluator::evaluate_integers(const Expr& e, const Block& block, Column& out) {
  if (fast(e, block, out)) return;
  out.resize(block.count);
  for (std::size_t row = 0; row < block.count; ++row) out[row] = evaluate_at(e, block, row).as_integer();
}

void ColumnEvaluator::select_elements(const Expr& e, const Block& block, Column& out) {
  if (fast_offsets(e, block, out)) return;
  out.resize(block.count);
  for (std::size_t row = 0; row < block.count; ++row) {
    try {
      out[row] = select(e, context_at(block, row))[0];
    } catch (const EvaluationFault& f) {
      throw BlockFault{f, row};
    }
  }
}

bool names_runs(const PlanModel& plan, const Expr& e) {
  const Buffer& buffer = plan.buffers[static_cast<std::size_t>(e.id)];
  const auto slice = std::ranges::find_if(e.subscripts, &Subscript::is_slice);
  const bool is_one = e.subscripts.empty() ? buffer.shape.empty() : slice == e.subscripts.end();
  if (is_one) return true;
  if (!buffer.strides.empty()) return false;
  return e.subscripts.empty() || (slice + 1 == e.subscripts.end() && is_constant(slice->step, 1));
}

void ColumnEvaluator::select_runs(const Expr& e, const Block& block, Column& firsts, Column& counts) {
  if (fast_runs(e, block, firsts, counts)) return;
  const Layout& layout = state_.layouts[static_cast<std::size_t>(e.id)];
  firsts.assign(block.count, 0);
  counts.assign(block.count, 1);
  for (std::size_t row = 0; row < block.count; ++row) {
    try {
      const std::vector<SubscriptRange> ranges = subscript_ranges(e, context_at(block, row));
      for (std::size_t d = 0; d < ranges.size(); ++d) {
        firsts[row] += ranges[d].first * layout.strides[d];
        counts[row] *= ranges[d].count;
      }
    } catch (const EvaluationFault& f) {
      throw BlockFault{f, row};
    }
  }
}

bool ColumnEvaluator::fast_runs(const Expr& e, const Block& block, Column& firsts, Column& counts) {
  const Layout& layout = state_.layouts[static_cast<std::size_t>(e.id)];
  if (e.subscripts.empty()) {
    firsts.assign(block.count, 0);
    counts.assign(block.count, layout.element_count);
    return true;
  }
  if (!e.subscripts.back().is_slice) {
    counts.assign(block.count, 1);
    return fast_offsets(e, block, firsts);
  }
  const Subscript& last = e.subscripts.back();
  const std::int64_t extent = layout.shape.back();
  if (last.lo) {
    if (!fast(*last.lo, block, firsts)) return false;
  } else {
    firsts.assign(block.count, 0);
  }
  if (last.hi) {
    if (!fast(*last.hi, block, counts)) return false;
  } else {
    counts.assign(block.count, extent);
  }
  for (std::size_t k = 0; k < block.count; ++k) {
    if (firsts[k] < 0 || counts[k] < firsts[k] || counts[k] > extent) return false;
    counts[k] -= firsts[k];
  }
  const Scratch index(*this);
  for (std::size_t d = 0; d + 1 < e.subscripts.size(); ++d) {
    if (!fast(*e.subscripts[d].lo, block, *index) || !add_offsets(*index, layout.shape[d], layout.strides[d], firsts))
      return false;
  }
  return true;
}

bool ColumnEvaluator::fast_offsets(const Expr& e, const Block& block, Column& out) {
  const Layout& layout = state_.layouts[static_cast<std::size_t>(e.id)];
  if (e.subscripts.size() != layout.shape.size()) return false;
  out.assign(block.count, 0);
  const Scratch index(*this);
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    if (e.subscripts[d].is_slice || !fast(*e.subscripts[d].lo, block, *index) ||
        !add_offsets(*index, layout.shape[d], layout.strides[d], out))
      return false;
  }
  return true;
}

bool ColumnEvaluator::fast(const Expr& e, const Block& block, Column& out) {
  if (e.record || !(is_integer(e.type) || e.type == Scalar::boolean)) return false;
  switch (e.kind) {
    case ExprKind::constant: out.assign(block.count, e.value.as_integer()); return true;
    case ExprKind::rank: out.assign(block.count, state_.rank); return true;
    case ExprKind::size: out.assign(block.count, state_.size); return true;
    case ExprKind::parameter:
      out.assign(block.count, state_.parameters[static_cast<std::size_t>(e.id)].as_integer());
      return true;
    case ExprKind::variable: out = block.words[static_cast<std::size_t>(e.id)]; return true;
    case ExprKind::element: {
      const std::byte* contents = state_.contents[static_cast<std::size_t>(e.id)];
      return contents && fast_offsets(e, block, out) &&
             load_integers(e.type, contents + e.field_offset_bytes, e.element_bytes, out);
    }
    case ExprKind::logical_and:
    case ExprKind::logical_or: {
      const Scratch right(*this);
      if (!fast(*e.operands[0], block, out) || !fast(*e.operands[1], block, *right)) return false;
      if (e.kind == ExprKind::logical_and) map(out, *right, [](auto a, auto b) { return a & b; });
      else map(out, *right, [](auto a, auto b) { return a | b; });
      return true;
    }
    case ExprKind::conditional: {
      const Scratch condition(*this), other(*this);
      if (!fast(*e.operands[0], block, *condition) || !fast(*e.operands[1], block, out) ||
          !fast(*e.operands[2], block, *other))
        return false;
      for (std::size_t k = 0; k < out.size(); ++k) out[k] = (*condition)[k] != 0 ? out[k] : (*other)[k];
      return true;
    }
    case ExprKind::operation: return fast_operation(e, block, out);
    default: return false;
  }
}

bool ColumnEvaluator::fast_operation(const Expr& e, const Block& block, Column& out) {
  const Expr& a = *e.operands[0];
  if (e.operation == Operation::convert) {
    if (!is_integer(a.type) && a.type != Scalar::boolean) return false;
    if (!fast(a, block, out)) return false;
    return converts_losslessly(a.type, e.type) || wrap(e.type, out);
  }
  if (e.operation == Operation::logical_not) {
    if (a.type != Scalar::boolean || !fast(a, block, out)) return false;
    for (std::int64_t& v : out) v = v == 0;
    return true;
  }
  const bool is_plain = e.operands.size() == 2 && a.type == Scalar::i64 && e.operands[1]->type == Scalar::i64;
  if (!is_plain || (e.type == Scalar::i64 && !e.is_index)) return false;
  const Scratch second(*this);
  Column& b = *second;
  if (!fast(a, block, out) || !fast(*e.operands[1], block, b)) return false;
  switch (e.operation) {
    case Operation::add:
      return combine(out, b, [](auto x, auto y, auto* to) { return __builtin_add_overflow(x, y, to); });
    case Operation::sub:
      return combine(out, b, [](auto x, auto y, auto* to) { return __builtin_sub_overflow(x, y, to); });
    case Operation::mul:
      return combine(out, b, [](auto x, auto y, auto* to) { return __builtin_mul_overflow(x, y, to); });
    case Operation::div: return divide(out, b, false);
    case Operation::mod: return divide(out, b, true);
    case Operation::min: map(out, b, [](auto x, auto y) { return y < x ? y : x; }); return true;
    case Operation::max: map(out, b, [](auto x, auto y) { return x < y ? y : x; }); return true;
    case Operation::eq: map(out, b, [](auto x, auto y) { return std::int64_t{x == y}; }); return true;
    case Operation::ne: map(out, b, [](auto x, auto y) { return std::int64_t{x != y}; }); return true;
    case Operation::lt: map(out, b, [](auto x, auto y) { return std::int64_t{x < y}; }); return true;
    case Operation::le: map(out, b, [](auto x, auto y) { return std::int64_t{x <= y}; }); return true;
    case Operation::gt: map(out, b, [](auto x, auto y) { return std::int64_t{x > y}; }); return true;
    case Operation::ge: map(out, b, [](auto x, auto y) { return std::int64_t{x >= y}; }); return true;
    default: return false;
  }
}

}  // namespace kplan
