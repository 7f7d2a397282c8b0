#include "engine/analysis/columns.hpp"

#include <algorithm>
#include <cstring>

#include "engine/analysis/pieces.hpp"

namespace kplan {
namespace {

using Column = std::vector<std::int64_t>;
using Operand = ColumnOperand;

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

/// Calls f(a's value, b's value, where the result goes) for every environment. `out` may be a's column.
template <class F>
void each_pair(const Operand& a, const Operand& b, std::size_t count, Column& out, const F& f) {
  out.resize(count);
  std::int64_t* const to = out.data();
  const auto all = [&](const auto& x, const auto& y) {
    for (std::size_t k = 0; k < count; ++k) f(x(k), y(k), to[k]);
  };
  const auto of_a = [&](std::size_t k) { return a.column[k]; };
  const auto of_b = [&](std::size_t k) { return b.column[k]; };
  const auto one_a = [&](std::size_t) { return a.value; };
  const auto one_b = [&](std::size_t) { return b.value; };
  if (a.column) b.column ? all(of_a, of_b) : all(of_a, one_b);
  else b.column ? all(one_a, of_b) : all(one_a, one_b);
}

/// out = a op b; false where one overflows, or where a divisor is not positive.
bool combine(Operation operation, const Operand& a, const Operand& b, std::size_t count, Column& out) {
  using Value = std::int64_t;
  bool is_wrong = false;
  const auto checked = [&](const auto& overflows) {
    each_pair(a, b, count, out, [&](Value x, Value y, Value& to) { is_wrong |= overflows(x, y, &to); });
    return !is_wrong;
  };
  const auto plain = [&](const auto& f) {
    each_pair(a, b, count, out, [&](Value x, Value y, Value& to) { to = f(x, y); });
    return true;
  };
  const auto divided = [&](bool wants_remainder) {
    each_pair(a, b, count, out, [&](Value x, Value y, Value& to) {
      if (y <= 0) {
        is_wrong = true;
        return;
      }
      Value quotient = x / y, remainder = x % y;
      if (remainder < 0) remainder += y, --quotient;
      to = wants_remainder ? remainder : quotient;
    });
    return !is_wrong;
  };
  switch (operation) {
    case Operation::add: return checked([](auto x, auto y, auto* to) { return __builtin_add_overflow(x, y, to); });
    case Operation::sub: return checked([](auto x, auto y, auto* to) { return __builtin_sub_overflow(x, y, to); });
    case Operation::mul: return checked([](auto x, auto y, auto* to) { return __builtin_mul_overflow(x, y, to); });
    case Operation::div: return divided(false);
    case Operation::mod: return divided(true);
    case Operation::min: return plain([](auto x, auto y) { return y < x ? y : x; });
    case Operation::max: return plain([](auto x, auto y) { return x < y ? y : x; });
    case Operation::eq: return plain([](auto x, auto y) { return Value{x == y}; });
    case Operation::ne: return plain([](auto x, auto y) { return Value{x != y}; });
    case Operation::lt: return plain([](auto x, auto y) { return Value{x < y}; });
    case Operation::le: return plain([](auto x, auto y) { return Value{x <= y}; });
    case Operation::gt: return plain([](auto x, auto y) { return Value{x > y}; });
    case Operation::ge: return plain([](auto x, auto y) { return Value{x >= y}; });
    case Operation::bit_and: return plain([](auto x, auto y) { return x & y; });
    case Operation::bit_or: return plain([](auto x, auto y) { return x | y; });
    default: return false;
  }
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
bool add_offsets(const Operand& index, std::int64_t extent, std::int64_t stride, Column& offsets) {
  const auto is_outside = [&](std::int64_t i) {
    return static_cast<std::uint64_t>(i) >= static_cast<std::uint64_t>(extent);
  };
  const auto moved = [&](std::int64_t offset, std::int64_t i) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(offset) +
                                     static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(stride));
  };
  if (!index.column) {
    for (std::int64_t& offset : offsets) offset = moved(offset, index.value);
    return !is_outside(index.value);
  }
  bool is_wrong = false;
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    is_wrong |= is_outside(index.column[k]);
    offsets[k] = moved(offsets[k], index.column[k]);
  }
  return !is_wrong;
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

/// What is the same in every environment, or has a column already.
std::optional<Operand> ColumnEvaluator::known(const Expr& e, const Block& block) const {
  switch (e.kind) {
    case ExprKind::constant: return Operand{nullptr, e.value.as_integer()};
    case ExprKind::rank: return Operand{nullptr, state_.rank};
    case ExprKind::size: return Operand{nullptr, state_.size};
    case ExprKind::parameter: return Operand{nullptr, state_.parameters[static_cast<std::size_t>(e.id)].as_integer()};
    case ExprKind::variable: return Operand{block.words[static_cast<std::size_t>(e.id)].data(), 0};
    default: return std::nullopt;
  }
}

/// f(operand) with the values of the expression; false where they cannot be had.
template <class F>
bool ColumnEvaluator::with_operand(const Expr& e, const Block& block, const F& f) {
  if (!is_integral(e)) return false;
  if (const auto operand = known(e, block)) return f(*operand);
  const Scratch memory(*this);
  return fast(e, block, *memory) && f(Operand{(*memory).data(), 0});
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
  for (std::size_t d = 0; d + 1 < e.subscripts.size(); ++d)
    if (!with_operand(*e.subscripts[d].lo, block, [&](const Operand& index) {
          return add_offsets(index, layout.shape[d], layout.strides[d], firsts);
        }))
      return false;
  return true;
}

bool ColumnEvaluator::fast_offsets(const Expr& e, const Block& block, Column& out) {
  const Layout& layout = state_.layouts[static_cast<std::size_t>(e.id)];
  if (e.subscripts.size() != layout.shape.size()) return false;
  out.assign(block.count, 0);
  for (std::size_t d = 0; d < layout.shape.size(); ++d)
    if (e.subscripts[d].is_slice || !with_operand(*e.subscripts[d].lo, block, [&](const Operand& index) {
          return add_offsets(index, layout.shape[d], layout.strides[d], out);
        }))
      return false;
  return true;
}

bool ColumnEvaluator::fast(const Expr& e, const Block& block, Column& out) {
  if (!is_integral(e)) return false;
  if (const auto operand = known(e, block)) {
    if (operand->column) out.assign(operand->column, operand->column + block.count);
    else out.assign(block.count, operand->value);
    return true;
  }
  switch (e.kind) {
    case ExprKind::element: {
      const std::byte* contents = state_.contents[static_cast<std::size_t>(e.id)];
      return contents && fast_offsets(e, block, out) &&
             load_integers(e.type, contents + e.field_offset_bytes, e.element_bytes, out);
    }
    case ExprKind::logical_and: return fast_pair(Operation::bit_and, e, block, out);
    case ExprKind::logical_or: return fast_pair(Operation::bit_or, e, block, out);
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

/// An operation on two operands; the first is worked out in `out`.
bool ColumnEvaluator::fast_pair(Operation operation, const Expr& e, const Block& block, Column& out) {
  const Expr& a = *e.operands[0];
  if (!is_integral(a)) return false;
  std::optional<Operand> first = known(a, block);
  if (!first) {
    if (!fast(a, block, out)) return false;
    first = Operand{out.data(), 0};
  }
  return with_operand(*e.operands[1], block,
                      [&](const Operand& second) { return combine(operation, *first, second, block.count, out); });
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
  return fast_pair(e.operation, e, block, out);
}

}  // namespace kplan
