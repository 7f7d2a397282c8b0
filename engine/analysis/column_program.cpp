// How it works: an expression's value lies in a slot, those of its operands in slots from that one on, as on a stack.
// Slots 0 and 1 are the caller's memory. What is the same in all environments, and variables, need no slot.
#include "engine/analysis/column_program.hpp"

#include <algorithm>
#include <cstring>

#include "engine/analysis/formula.hpp"
#include "engine/analysis/with_integer.hpp"

namespace kplan {
namespace {

using Value = std::int64_t;

/// to = f(a, b) for every environment, where what f(x, y, out) returns is negative if it went wrong; false where one
/// did. `to` may be a column that is read.
template <class F>
[[gnu::always_inline]] inline bool each_pair(const ColumnOperand& a, const ColumnOperand& b, std::size_t count,
                                             Value* to, const F& f) {
  Value wrong = 0;
  if (a.column && b.column) {
#pragma GCC ivdep
    for (std::size_t k = 0; k < count; ++k) wrong |= f(a.column[k], b.column[k], to[k]);
  } else if (a.column) {
#pragma GCC ivdep
    for (std::size_t k = 0; k < count; ++k) wrong |= f(a.column[k], b.value, to[k]);
  } else if (b.column) {
#pragma GCC ivdep
    for (std::size_t k = 0; k < count; ++k) wrong |= f(a.value, b.column[k], to[k]);
  } else {
    for (std::size_t k = 0; k < count; ++k) wrong |= f(a.value, b.value, to[k]);
  }
  return wrong >= 0;
}

constexpr auto as_unsigned(Value v) { return static_cast<std::uint64_t>(v); }

// A sum overflows where it has another sign than both of what is added. __builtin_add_overflow keeps loops from
// becoming vectors.
constexpr Value add(Value x, Value y, Value& out) {
  out = static_cast<Value>(as_unsigned(x) + as_unsigned(y));
  return (x ^ out) & (y ^ out);
}

constexpr Value subtract(Value x, Value y, Value& out) {
  out = static_cast<Value>(as_unsigned(x) - as_unsigned(y));
  return (x ^ y) & (x ^ out);
}

constexpr Value multiply(Value x, Value y, Value& out) { return __builtin_mul_overflow(x, y, &out) ? -1 : 0; }

/// Floored; wrong where the divisor is not positive.
template <bool wants_remainder>
Value divide(Value x, Value y, Value& out) {
  if (y <= 0) return -1;
  Value quotient = x / y, remainder = x % y;
  if (remainder < 0) remainder += y, --quotient;
  out = wants_remainder ? remainder : quotient;
  return 0;
}

/// Wrong where bits are lost, or where it is not by 0 to 63 bits.
constexpr Value shift_left(Value x, Value y, Value& out) {
  if (y < 0 || y > 63) return -1;
  out = static_cast<Value>(as_unsigned(x) << y);
  return out >> y == x ? 0 : -1;
}

/// Wrong where it is by fewer than no bits.
constexpr Value shift_right(Value x, Value y, Value& out) {
  if (y < 0) return -1;
  out = x >> std::min<Value>(y, 63);
  return 0;
}

/// to = a op b; false where one overflows, and where a divisor is not positive or a shift has no meaning.
[[gnu::always_inline]] inline bool combine(Operation operation, const ColumnOperand& a, const ColumnOperand& b,
                                           std::size_t count, Value* to) {
  const auto checked = [&](const auto& f) __attribute__((always_inline)) { return each_pair(a, b, count, to, f); };
  const auto plain = [&](const auto& f) __attribute__((always_inline)) {
    return each_pair(a, b, count, to, [&](Value x, Value y, Value& out) { return out = f(x, y), Value{0}; });
  };
  switch (operation) {
    case Operation::add: return checked(add);
    case Operation::sub: return checked(subtract);
    case Operation::mul: return checked(multiply);
    case Operation::div: return checked(divide<false>);
    case Operation::mod: return checked(divide<true>);
    case Operation::min: return plain([](auto x, auto y) { return y < x ? y : x; });
    case Operation::max: return plain([](auto x, auto y) { return x < y ? y : x; });
    case Operation::eq: return plain([](auto x, auto y) { return Value{x == y}; });
    case Operation::ne: return plain([](auto x, auto y) { return Value{x != y}; });
    case Operation::lt: return plain([](auto x, auto y) { return Value{x < y}; });
    case Operation::le: return plain([](auto x, auto y) { return Value{x <= y}; });
    case Operation::gt: return plain([](auto x, auto y) { return Value{x > y}; });
    case Operation::ge: return plain([](auto x, auto y) { return Value{x >= y}; });
    case Operation::bit_and: return plain([](auto x, auto y) { return x & y; });
    case Operation::bit_xor: return plain([](auto x, auto y) { return x ^ y; });
    case Operation::shl: return checked(shift_left);
    case Operation::shr: return checked(shift_right);
    default: return plain([](auto x, auto y) { return x | y; });
  }
}

/// to += index * stride, or to = index * stride; false where an index is outside the extent.
[[gnu::always_inline]] inline bool add_index(const ColumnOperand& index, std::int64_t extent, std::int64_t stride,
                                             bool is_first, std::size_t count, Value* to) {
  const auto each = [&](const auto& index_at, const auto& scale) __attribute__((always_inline)) {
    Value wrong = 0;
#pragma GCC ivdep
    for (std::size_t k = 0; k < count; ++k) {
      const Value i = index_at(k);
      wrong |= i | static_cast<Value>(as_unsigned(extent) - 1 - as_unsigned(i));
      to[k] = static_cast<Value>((is_first ? 0 : as_unsigned(to[k])) + as_unsigned(i) * scale);
    }
    return wrong >= 0;
  };
  const auto each_index = [&](const auto& scale) __attribute__((always_inline)) {
    if (index.column) return each([&](std::size_t k) { return index.column[k]; }, scale);
    return each([&](std::size_t) { return index.value; }, scale);
  };
  if (stride == 1) return each_index(std::integral_constant<std::uint64_t, 1>());  // a product of 64 bits takes long
  return each_index(as_unsigned(stride));
}

/// first = lo * stride and count = hi - lo; false where a slice is not inside the extent.
[[gnu::always_inline]] inline bool lengths(const ColumnOperand& lo, const ColumnOperand& hi, std::int64_t extent,
                                           std::int64_t stride, std::size_t count, std::int64_t* firsts,
                                           std::int64_t* counts) {
  bool is_wrong = false;
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t first = lo.column ? lo.column[k] : lo.value, end = hi.column ? hi.column[k] : hi.value;
    is_wrong |= first < 0 || end < first || end > extent;
    firsts[k] = static_cast<std::int64_t>(as_unsigned(first) * as_unsigned(stride));
    counts[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(first));
  }
  return !is_wrong;
}

}  // namespace

ColumnProgram::ColumnProgram(const Expr& e, Form form, const RankState& state) : e_(&e), form_(form), checked_(&state) {
  memory_.resize(2);
  if (form == Form::integers) {
    const std::optional<Source> value = add(e, 0);
    is_complete_ = value.has_value();
    if (value) copy_to(*value, 0);
    is_plain_ = steps_.size() == 1 && steps_[0].kind == Step::Kind::copy;
  } else {
    is_complete_ = form == Form::elements ? add_offsets(e, 0) : add_runs(e);
  }
  checked_ = nullptr;
  slots_.resize(memory_.size());
}

std::optional<ColumnProgram::Source> ColumnProgram::add_step(Step step) {
  const auto slots = static_cast<std::size_t>(step.to) + 1;
  if (memory_.size() < slots) memory_.resize(slots);
  steps_.push_back(step);
  return Source{Source::Kind::slot, step.to, 0};
}

void ColumnProgram::copy_to(Source from, std::int32_t to) {
  if (from.kind != Source::Kind::slot || from.number != to) add_step({.kind = Step::Kind::copy, .to = to, .a = from});
}

std::optional<ColumnProgram::Source> ColumnProgram::add(const Expr& e, std::int32_t to) {
  if (!is_integral(e)) return std::nullopt;
  switch (e.kind) {
    case ExprKind::constant: return Source{Source::Kind::value, 0, e.value.as_integer()};
    case ExprKind::rank: return Source{Source::Kind::rank};
    case ExprKind::size: return Source{Source::Kind::size};
    case ExprKind::parameter: return Source{Source::Kind::parameter, e.id};
    case ExprKind::variable: return Source{Source::Kind::variable, e.id};
    case ExprKind::element:
      if (e.type == Scalar::boolean || !add_offsets(e, to)) return std::nullopt;
      return add_step({.kind = Step::Kind::load,
                       .type = e.type,
                       .to = to,
                       .buffer = e.id,
                       .element_bytes = e.element_bytes,
                       .offset_bytes = e.field_offset_bytes});
    case ExprKind::logical_and: return add_pair(Operation::bit_and, e, to);
    case ExprKind::logical_or: return add_pair(Operation::bit_or, e, to);
    case ExprKind::conditional: return add_choice(e, to);
    case ExprKind::operation: return add_operation(e, to);
    default: return std::nullopt;
  }
}

std::optional<ColumnProgram::Source> ColumnProgram::add_pair(Operation operation, const Expr& e, std::int32_t to) {
  const std::optional<Source> a = add(*e.operands[0], to);
  if (!a) return std::nullopt;
  const std::optional<Source> b = add(*e.operands[1], a->kind == Source::Kind::slot ? to + 1 : to);
  if (!b) return std::nullopt;
  return add_step({.kind = Step::Kind::combine, .operation = operation, .to = to, .a = *a, .b = *b});
}

/// Both sides are worked out; a fault in either makes the run fail.
std::optional<ColumnProgram::Source> ColumnProgram::add_choice(const Expr& e, std::int32_t to) {
  const auto condition = add(*e.operands[0], to), chosen = add(*e.operands[1], to + 1),
             other = add(*e.operands[2], to + 2);
  if (!condition || !chosen || !other) return std::nullopt;
  return add_step({.kind = Step::Kind::choose, .to = to, .a = *condition, .b = *chosen, .c = *other});
}

std::optional<ColumnProgram::Source> ColumnProgram::add_operation(const Expr& e, std::int32_t to) {
  const Expr& first = *e.operands[0];
  if (e.operation == Operation::convert) {
    const std::optional<Source> a = add(first, to);
    if (!a || converts_losslessly(first.type, e.type)) return a;
    if (!is_integer(e.type)) return std::nullopt;
    return add_step({.kind = Step::Kind::wrap, .type = e.type, .to = to, .a = *a});
  }
  if (e.operation == Operation::logical_not) {
    const std::optional<Source> a = add(first, to);
    if (!a || first.type != Scalar::boolean) return std::nullopt;
    return add_step({.kind = Step::Kind::negate, .to = to, .a = *a});
  }
  const bool is_plain = e.operands.size() == 2 && first.type == Scalar::i64 && e.operands[1]->type == Scalar::i64;
  if (!is_plain || (e.type == Scalar::i64 && !e.is_index) || !is_index_operation(e.operation)) return std::nullopt;
  return add_pair(e.operation, e, to);
}

/// Offsets of one element for each environment.
bool ColumnProgram::add_offsets(const Expr& e, std::int32_t to) {
  if (e.subscripts.size() != checked_->layouts[static_cast<std::size_t>(e.id)].shape.size()) return false;
  if (e.subscripts.empty()) copy_to({}, to);
  for (std::size_t d = 0; d < e.subscripts.size(); ++d) {
    if (e.subscripts[d].is_slice) return false;
    const std::optional<Source> index = add(*e.subscripts[d].lo, d == 0 ? to : to + 1);
    if (!index) return false;
    add_step({.kind = Step::Kind::add_index,
              .to = to,
              .a = *index,
              .b = d == 0 ? Source{} : Source{Source::Kind::slot, to},
              .buffer = e.id,
              .dimension = static_cast<std::int32_t>(d)});
  }
  return true;
}

/// Firsts to slot 0, counts to slot 1.
bool ColumnProgram::add_runs(const Expr& e) {
  if (e.subscripts.empty()) {
    copy_to({}, 0);
    copy_to({Source::Kind::element_count, e.id}, 1);
    return true;
  }
  const auto slice = std::ranges::find_if(e.subscripts, &Subscript::is_slice);
  if (slice == e.subscripts.end()) {
    if (!add_offsets(e, 0)) return false;
    copy_to({Source::Kind::value, 0, 1}, 1);
    return true;
  }
  const auto dimension = static_cast<std::int32_t>(slice - e.subscripts.begin());
  const std::optional<Source> lo = slice->lo ? add(*slice->lo, 0) : Source{},
                              hi = slice->hi ? add(*slice->hi, 1) : Source{Source::Kind::extent, e.id, dimension};
  if (!lo || !hi) return false;
  add_step({.kind = Step::Kind::lengths, .to = 0, .a = *lo, .b = *hi, .buffer = e.id, .dimension = dimension});
  for (std::int32_t d = 0; d < static_cast<std::int32_t>(e.subscripts.size()); ++d) {
    if (d == dimension) continue;
    const std::optional<Source> index = add(*e.subscripts[static_cast<std::size_t>(d)].lo, 2);
    if (!index) return false;
    add_step({.kind = Step::Kind::add_index,
              .to = 0,
              .a = *index,
              .b = Source{Source::Kind::slot, 0},
              .buffer = e.id,
              .dimension = d});
  }
  return true;
}

[[gnu::always_inline]] inline ColumnOperand ColumnProgram::operand(const Source& source, const RankState& state,
                                                                   const Block& block) const {
  const auto n = static_cast<std::size_t>(source.number);
  switch (source.kind) {
    case Source::Kind::value: return {nullptr, source.value};
    case Source::Kind::rank: return {nullptr, state.rank};
    case Source::Kind::size: return {nullptr, state.size};
    case Source::Kind::parameter: return {nullptr, state.parameters[n].as_integer()};
    case Source::Kind::variable: return {block.words[n].data(), 0};
    case Source::Kind::slot: return {slots_[n], 0};
    case Source::Kind::extent: return {nullptr, state.layouts[n].shape[static_cast<std::size_t>(source.value)]};
    case Source::Kind::element_count: break;
  }
  return {nullptr, state.layouts[n].element_count};
}

[[gnu::always_inline]] inline bool ColumnProgram::run_step(const Step& step, std::size_t count, const RankState& state,
                                                           const Block& block) {
  std::int64_t* const to = slots_[static_cast<std::size_t>(step.to)];
  const auto buffer = static_cast<std::size_t>(step.buffer), dimension = static_cast<std::size_t>(step.dimension);
  const ColumnOperand a = operand(step.a, state, block);
  const auto each = [&](const auto& f) {
    if (a.column)
      for (std::size_t k = 0; k < count; ++k) to[k] = f(a.column[k]);
    else
      for (std::size_t k = 0; k < count; ++k) to[k] = f(a.value);
    return true;
  };
  switch (step.kind) {
    case Step::Kind::copy: return each([](std::int64_t v) { return v; });
    case Step::Kind::negate: return each([](std::int64_t v) { return std::int64_t{v == 0}; });
    case Step::Kind::combine: return combine(step.operation, a, operand(step.b, state, block), count, to);
    case Step::Kind::choose: {
      const ColumnOperand b = operand(step.b, state, block), c = operand(step.c, state, block);
      for (std::size_t k = 0; k < count; ++k) {
        const ColumnOperand& from = (a.column ? a.column[k] : a.value) != 0 ? b : c;
        to[k] = from.column ? from.column[k] : from.value;
      }
      return true;
    }
    case Step::Kind::wrap:
      with_integer(step.type, [&]<class T>() {
        each([](std::int64_t v) { return static_cast<std::int64_t>(static_cast<T>(v)); });
      });
      return true;
    case Step::Kind::add_index: {
      const Layout& layout = state.layouts[buffer];
      return add_index(a, layout.shape[dimension], layout.strides[dimension], step.b.kind != Source::Kind::slot, count,
                       to);
    }
    case Step::Kind::load: {
      const std::byte* const contents = state.contents[buffer];
      if (!contents) return false;
      with_integer(step.type, [&]<class T>() {
        for (std::size_t k = 0; k < count; ++k) {
          T value;
          std::memcpy(&value, contents + step.offset_bytes + static_cast<std::size_t>(to[k]) * step.element_bytes,
                      sizeof value);
          to[k] = static_cast<std::int64_t>(value);
        }
      });
      return true;
    }
    case Step::Kind::lengths: break;
  }
  const Layout& layout = state.layouts[buffer];
  return lengths(a, operand(step.b, state, block), layout.shape[dimension], layout.strides[dimension], count, to,
                 slots_[static_cast<std::size_t>(step.to) + 1]);
}

bool ColumnProgram::run_steps(const RankState& state, const Block& block, std::int64_t* values, std::int64_t* counts) {
  if (room_ < block.count) {
    room_ = block.count;
    for (std::size_t k = 1; k < memory_.size(); ++k) slots_[k] = room_in(memory_[k], room_);
  }
  slots_[0] = values;
  slots_[1] = counts ? counts : memory_[1].data();
  const auto run_all = [&](std::size_t count) __attribute__((always_inline)) {
    for (const Step& step : steps_)
      if (!run_step(step, count, state, block)) return false;
    return true;
  };
  return block.count == 1 ? run_all(1) : run_all(block.count);  // code of its own, without loops
}

bool ColumnProgram::run(const RankState& state, const Block& block, std::int64_t* values, std::int64_t* counts) {
  if (!is_plain_) return is_complete_ && run_steps(state, block, values, counts);
  const ColumnOperand from = operand(steps_[0].a, state, block);
  for (std::size_t k = 0; k < block.count; ++k) values[k] = from.column ? from.column[k] : from.value;
  return true;
}

}  // namespace kplan
